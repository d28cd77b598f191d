<?php

declare(strict_types=1);

namespace Nuthatch;

use Closure;
use DateInterval;
use Nuthatch\Exception\CacheException;
use Nuthatch\Exception\InvalidArgumentException;
use Psr\SimpleCache\CacheInterface;

/**
 * PSR-16.
 *
 * A cache that fails does not make its program fail: a get then finds nothing, one of many keys what there is all the same, and
 * a change returns false. What failed is given
 * to a function, if there is one. Only calls that are wrong by themselves throw.
 *
 * clear() removes all items of the servers, whatever their prefix.
 */
final class SimpleCache implements CacheInterface
{
    /** Longer keys are stored under their hash. With a prefix, and as base64, this has room. */
    private const KEY_MAX = 128;

    private readonly ?Closure $failed;

    /**
     * @param null|int|DateInterval $lifetime of items that are set without one: seconds
     * @param null|callable(CacheException): void $failed is given what failed
     */
    public function __construct(
        private readonly Client $client,
        private readonly null|int|DateInterval $lifetime = null,
        ?callable $failed = null,
    ) {
        $this->failed = $failed === null ? null : $failed(...);
    }

    public function get($key, $default = null): mixed
    {
        $key = self::key($key);
        return $this->attempt(fn () => $this->client->get($key, $default), $default);
    }

    public function set($key, $value, $ttl = null): bool
    {
        $key = self::key($key);
        $lifetime = $this->lifetime($ttl);
        return $this->attempt(function () use ($key, $value, $lifetime): bool {
            if ($lifetime === false) {
                $this->client->delete($key);
            } else {
                $this->client->set($key, $value, $lifetime);
            }
            return true;
        }, false);
    }

    public function delete($key): bool
    {
        $key = self::key($key);
        return $this->attempt(function () use ($key): bool {
            $this->client->delete($key);
            return true;
        }, false);
    }

    public function clear(): bool
    {
        return $this->attempt(function (): bool {
            $this->client->flush();
            return true;
        }, false);
    }

    public function getMultiple($keys, $default = null): iterable
    {
        $keys = self::listed($keys);
        $stored = array_map(self::key(...), $keys);
        $found = $this->client->getMany($stored, $this->tell(...));
        $values = [];
        foreach ($stored as $at => $key) {
            $values[$keys[$at]] = array_key_exists($key, $found) ? $found[$key] : $default;
        }
        return $values;
    }

    public function setMultiple($values, $ttl = null): bool
    {
        if (!is_iterable($values)) {
            throw self::wrong($values, 'values are to be something iterable');
        }
        $checked = [];
        foreach ($values as $key => $value) {
            // PHP makes integers of keys of arrays that look like one.
            $checked[self::key(is_int($key) ? (string) $key : $key)] = $value;
        }
        $lifetime = $this->lifetime($ttl);
        return $this->attempt(function () use ($checked, $lifetime): bool {
            if ($lifetime === false) {
                $this->client->deleteMany(array_keys($checked));
            } else {
                $this->client->setMany($checked, $lifetime);
            }
            return true;
        }, false);
    }

    public function deleteMultiple($keys): bool
    {
        $keys = array_map(self::key(...), self::listed($keys));
        return $this->attempt(function () use ($keys): bool {
            $this->client->deleteMany($keys);
            return true;
        }, false);
    }

    public function has($key): bool
    {
        $key = self::key($key);
        return $this->attempt(fn () => $this->client->has($key), false);
    }

    /** What a call returns, or the default if the cache has failed. */
    private function attempt(callable $call, mixed $default): mixed
    {
        try {
            return $call();
        } catch (InvalidArgumentException $failure) {
            throw $failure;
        } catch (CacheException $failure) {
            $this->tell($failure);
            return $default;
        }
    }

    private function tell(CacheException $failure): void
    {
        if ($this->failed !== null) {
            ($this->failed)($failure);
        }
    }

    /** A lifetime, null for one without an end, false for one that is over. */
    private function lifetime(mixed $lifetime): null|false|int|float
    {
        if ($lifetime !== null && !is_int($lifetime) && !$lifetime instanceof DateInterval) {
            throw self::wrong($lifetime, 'a lifetime is an integer, an interval or null');
        }
        $lifetime ??= $this->lifetime;
        if ($lifetime === null) {
            return null;
        }
        $seconds = Lifetime::seconds($lifetime);
        return $seconds > 0 ? $seconds : false;
    }

    /** What a key is to the client, if the standard allows it. */
    private static function key(mixed $key): string
    {
        if (!is_string($key)) {
            throw self::wrong($key, 'a key is a string');
        }
        if ($key === '' || strpbrk($key, '{}()/\\@:') !== false) {
            throw new InvalidArgumentException("the key \"$key\" is empty, or has one of the characters {}()/\\@:");
        }
        // Servers take no longer ones; and nobody else's key has a brace.
        return strlen($key) > self::KEY_MAX ? '{' . hash('sha256', $key) . '}' : $key;
    }

    private static function listed(mixed $keys): array
    {
        if (!is_iterable($keys)) {
            throw self::wrong($keys, 'keys are to be something iterable');
        }
        return is_array($keys) ? array_values($keys) : iterator_to_array($keys, false);
    }

    private static function wrong(mixed $found, string $words): InvalidArgumentException
    {
        return new InvalidArgumentException($words . ', and this is ' . get_debug_type($found));
    }
}
