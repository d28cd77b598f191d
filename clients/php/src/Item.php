<?php

declare(strict_types=1);

namespace Nuthatch;

/** A value, and what else the server knows of it. */
final class Item
{
    /**
     * @param int $cas a number that changes with the item, for Client::cas()
     * @param int|null $left the seconds that are left, null without an end
     */
    public function __construct(
        public readonly mixed $value,
        public readonly int $cas,
        public readonly ?int $left,
    ) {
    }
}
