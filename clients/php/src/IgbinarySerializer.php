<?php

declare(strict_types=1);

namespace Nuthatch;

use Nuthatch\Exception\InvalidArgumentException;
use Nuthatch\Exception\SerializationException;

/**
 * The extension igbinary: smaller than PHP's own form. It makes objects of any class that the bytes name, so that it is to be
 * had only where these are allowed.
 */
final class IgbinarySerializer implements Serializer
{
    public function __construct()
    {
        if (!extension_loaded('igbinary')) {
            throw new InvalidArgumentException('PHP has no extension igbinary');
        }
    }

    public function flags(): int
    {
        return 1 << 7;
    }

    public function serialize(mixed $value): string
    {
        try {
            return igbinary_serialize($value);
        } catch (\Throwable $failure) {
            throw new SerializationException($failure->getMessage(), 0, $failure);
        }
    }

    public function unserialize(string $bytes): mixed
    {
        if ($bytes === '') {
            // The extension takes it for false.
            throw new SerializationException('no serialized value: no bytes');
        }
        return Warnings::thrown(static fn () => igbinary_unserialize($bytes));
    }
}
