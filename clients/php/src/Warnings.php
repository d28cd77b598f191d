<?php

declare(strict_types=1);

namespace Nuthatch;

use Nuthatch\Exception\SerializationException;

/**
 * Functions that tell failures by warnings.
 *
 * @internal
 */
final class Warnings
{
    /** What a function returns, unless it warns. */
    public static function thrown(callable $function): mixed
    {
        set_error_handler(static fn (int $kind, string $words) => throw new SerializationException($words), E_NOTICE | E_WARNING);
        try {
            return $function();
        } catch (SerializationException $failure) {
            throw $failure;
        } catch (\Throwable $failure) {
            throw new SerializationException($failure->getMessage(), 0, $failure);
        } finally {
            restore_error_handler();
        }
    }
}
