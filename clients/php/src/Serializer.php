<?php

declare(strict_types=1);

namespace Nuthatch;

/** How values that are neither strings nor integers become bytes, and values again. */
interface Serializer
{
    /** What it has made is stored with these flags, by which it is known again. 0, 2 and 16 are taken. */
    public function flags(): int;

    /** @throws Exception\SerializationException if the value has no such form */
    public function serialize(mixed $value): string;

    /** @throws Exception\SerializationException if the bytes are no value, or one that is not allowed */
    public function unserialize(string $bytes): mixed;
}
