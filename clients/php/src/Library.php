<?php

declare(strict_types=1);

namespace Nuthatch;

use FFI;
use Nuthatch\Exception\LibraryException;

/**
 * Finds libnuthatch_client.
 *
 * @internal
 */
final class Library
{
    private const HEADER = __DIR__ . '/nuthatch_client.h';
    private const SCOPE = 'NUTHATCH_CLIENT';
    private const VARIABLE = 'NUTHATCH_CLIENT_LIBRARY';

    /** @var array<string, FFI> */
    private static array $loaded = [];

    /**
     * The library in this file; or the one that was preloaded; or the one that the environment names; or the one that the
     * system finds by its name.
     */
    public static function load(?string $file): FFI
    {
        return self::$loaded[$file ?? ''] ??= self::find($file);
    }

    private static function find(?string $file): FFI
    {
        if (!extension_loaded('ffi')) {
            throw new LibraryException('PHP has no extension ffi');
        }
        try {
            if ($file === null) {
                try {
                    return FFI::scope(self::SCOPE);
                } catch (FFI\Exception) {
                    // ffi.preload does not name it.
                }
                $file = getenv(self::VARIABLE);
            }
            $header = file_get_contents(self::HEADER);
            if ($file === false) {
                preg_match('/^#define FFI_LIB "(.*)"$/m', $header, $found);
                $file = $found[1];
            }
            return FFI::cdef(preg_replace('/^#.*$/m', '', $header), $file);
        } catch (FFI\Exception $failure) {
            throw new LibraryException($failure->getMessage() . ': see "Setting up" in README.md', 0, $failure);
        }
    }
}
