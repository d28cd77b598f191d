<?php

declare(strict_types=1);

namespace Nuthatch;

use DateInterval;
use DateTimeImmutable;
use Nuthatch\Exception\InvalidArgumentException;

/**
 * Lifetimes in seconds, as callers have them and as the library takes them.
 *
 * @internal
 */
final class Lifetime
{
    /** What has a later end has none: the protocol has no dates after 2038. */
    private const LONGEST = 100 * 365 * 24 * 60 * 60;

    /** Milliseconds, -1 without an end. */
    public static function milliseconds(null|int|float|DateInterval $lifetime): int
    {
        if ($lifetime === null) {
            return -1;
        }
        $seconds = self::seconds($lifetime);
        // Neither is what is no number.
        if (!($seconds > 0)) {
            throw new InvalidArgumentException("a lifetime of $seconds s: it is more than 0, or null for one without an end");
        }
        return (int) ceil(min($seconds, self::LONGEST) * 1000);
    }

    /** Seconds, which may be none or negative. */
    public static function seconds(int|float|DateInterval $lifetime): int|float
    {
        if (!$lifetime instanceof DateInterval) {
            return $lifetime;
        }
        $now = new DateTimeImmutable();
        $end = $now->add($lifetime);
        return $end->getTimestamp() - $now->getTimestamp() + ((int) $end->format('u') - (int) $now->format('u')) / 1_000_000;
    }
}
