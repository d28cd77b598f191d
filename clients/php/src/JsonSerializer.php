<?php

declare(strict_types=1);

namespace Nuthatch;

use Nuthatch\Exception\SerializationException;

/** What JSON has: readable by all languages. Objects come back as arrays. */
final class JsonSerializer implements Serializer
{
    public function flags(): int
    {
        // As the Python client's.
        return 1 << 5;
    }

    public function serialize(mixed $value): string
    {
        try {
            return json_encode(
                $value,
                JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION
            );
        } catch (\Throwable $failure) {
            // What JSON has no form for, or an object whose own method fails.
            throw new SerializationException($failure->getMessage(), 0, $failure);
        }
    }

    public function unserialize(string $bytes): mixed
    {
        try {
            return json_decode($bytes, true, flags: JSON_THROW_ON_ERROR);
        } catch (\JsonException $failure) {
            throw new SerializationException($failure->getMessage(), 0, $failure);
        }
    }
}
