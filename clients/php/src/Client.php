<?php

declare(strict_types=1);

namespace Nuthatch;

use DateInterval;
use Nuthatch\Exception\CacheException;
use Nuthatch\Exception\InvalidArgumentException;
use Nuthatch\Exception\NotANumberException;
use Nuthatch\Exception\SerializationException;

/**
 * A client of Nuthatch and memcached. See README.md for addresses and for what values may be.
 *
 * An object of it is cheap: the connections belong to the process, which has one client for each address for as long as it
 * lives. A child of a fork gets connections of its own.
 *
 * Lifetimes are in seconds, a part of one is rounded up; null is without an end. Keys are any 1 to 250 bytes, with the prefix.
 * All calls throw what is in Nuthatch\Exception, where each class says what it means.
 */
final class Client
{
    /** Flags of strings: those of this client, and of the Python client. */
    private const FLAGS_STRING = [0 => true, 1 << 4 => true];
    private const FLAGS_INTEGER = 1 << 1;
    /** The most that one call of the library is given. */
    private const KEYS_MAX = 1024;
    private const BYTES_MAX = 8 << 20;

    private readonly Native $native;
    private readonly Serializer $serializer;
    private readonly int $flags;

    /**
     * @param string $address "unix:///PATH", "shm:///PATH?or=unix:///PATH" or "tcp://HOST:PORT,HOST:PORT", with options behind
     *     "?", as docs/clients.md describes them
     * @param string|Serializer $serializer for values that are neither strings nor integers: "php", "igbinary" or "json", or
     *     one of your own
     * @param bool|list<class-string> $allowedClasses of which classes values may be or contain objects; true: of all. Who can
     *     write to the server chooses which objects are made
     * @param string $prefix what is put in front of all keys
     * @param string|null $library the file of libnuthatch_client, if the system does not find it
     */
    public function __construct(
        string $address,
        string|Serializer $serializer = 'php',
        bool|array $allowedClasses = false,
        private readonly string $prefix = '',
        ?string $library = null,
    ) {
        $this->serializer = is_string($serializer) ? self::serializer($serializer, $allowedClasses) : $serializer;
        $this->flags = $this->serializer->flags();
        $this->native = Native::of($address, $library);
    }

    private static function serializer(string $name, bool|array $allowedClasses): Serializer
    {
        return match ($name) {
            'php' => new PhpSerializer($allowedClasses),
            'json' => new JsonSerializer(),
            'igbinary' => $allowedClasses === true ? new IgbinarySerializer() : throw new InvalidArgumentException(
                'igbinary makes objects of any class: it needs allowedClasses to be true'
            ),
            default => throw new InvalidArgumentException("no serializer is called $name: there are php, igbinary and json"),
        };
    }

    /** The library's version. */
    public function version(): string
    {
        return $this->native->version();
    }

    /** The value under a key, or the default if there is none. */
    public function get(string $key, mixed $default = null): mixed
    {
        $bytes = $this->native->get($this->prefix . $key, $flags);
        return $bytes === null ? $default : $this->unpacked($bytes, $flags);
    }

    /** The value under a key with what else the server knows of it; null if there is none. */
    public function getItem(string $key): ?Item
    {
        $bytes = $this->native->getItem($this->prefix . $key, $flags, $cas, $left);
        if ($bytes === null) {
            return null;
        }
        $value = $this->unpacked($bytes, $flags);
        $left = $left < 0 ? null : $left;
        return new Item($value, $cas, $left);
    }

    /** Whether there is a value under a key. */
    public function has(string $key): bool
    {
        return $this->native->has($this->prefix . $key);
    }

    /**
     * The values under keys, by the keys; those that there are.
     *
     * @param iterable<string> $keys
     * @param null|callable(CacheException): void $failed is given why values are missing: a server that cannot be asked, or a
     *     value that cannot be read. The others are returned then. Without it this throws
     * @return array<string, mixed>
     */
    public function getMany(iterable $keys, ?callable $failed = null): array
    {
        $failed ??= static fn (CacheException $failure) => throw $failure;
        $values = [];
        foreach (array_chunk(self::listed($keys), self::KEYS_MAX) as $some) {
            $found = $this->native->getMany($this->prefixed($some), $failure);
            if ($failure instanceof InvalidArgumentException) {
                throw $failure;
            }
            if ($failure !== null) {
                $failed($failure);
            }
            foreach ($found as $at => [$bytes, $flags]) {
                try {
                    $values[$some[$at]] = $this->unpacked($bytes, $flags);
                } catch (CacheException $unreadable) {
                    $failed($unreadable);
                }
            }
        }
        return $values;
    }

    /** Stores a value. */
    public function set(string $key, mixed $value, null|int|float|DateInterval $lifetime = null): void
    {
        $this->store('set', $key, $value, $lifetime);
    }

    /**
     * Stores values by their keys. If it throws, some may be stored.
     *
     * @param iterable<string, mixed> $values
     */
    public function setMany(iterable $values, null|int|float|DateInterval $lifetime = null): void
    {
        $milliseconds = Lifetime::milliseconds($lifetime);
        $items = [];
        $bytes = 0;
        foreach ($values as $key => $value) {
            $item = [$this->prefix . self::key($key), ...$this->packed($value)];
            $items[] = $item;
            $bytes += strlen($item[1]);
            if (count($items) === self::KEYS_MAX || $bytes >= self::BYTES_MAX) {
                $this->native->setMany($items, $milliseconds);
                [$items, $bytes] = [[], 0];
            }
        }
        $this->native->setMany($items, $milliseconds);
    }

    /** Stores a value if there is none. Returns whether it did. */
    public function add(string $key, mixed $value, null|int|float|DateInterval $lifetime = null): bool
    {
        return $this->store('add', $key, $value, $lifetime);
    }

    /** Stores a value if there is one. Returns whether it did. */
    public function replace(string $key, mixed $value, null|int|float|DateInterval $lifetime = null): bool
    {
        return $this->store('replace', $key, $value, $lifetime);
    }

    /** Stores a value if nobody has changed the item since getItem() gave this number. Returns whether it did. */
    public function cas(string $key, mixed $value, int $cas, null|int|float|DateInterval $lifetime = null): bool
    {
        [$bytes, $flags] = $this->packed($value);
        return $this->native->cas($this->prefix . $key, $bytes, Lifetime::milliseconds($lifetime), $flags, $cas);
    }

    /**
     * Adds to an integer and returns the sum; null if there is none. It wraps around at 2^64, and a negative one is none. If
     * the sum is more than PHP's integers have, this throws NotANumberException, and the sum is stored.
     */
    public function increment(string $key, int $by = 1): ?int
    {
        return $this->counted('incr', $key, $by);
    }

    /** Subtracts from an integer, down to 0, and returns what is left; null if there is none. */
    public function decrement(string $key, int $by = 1): ?int
    {
        return $this->counted('decr', $key, $by);
    }

    /** Gives an item this lifetime from now on. Returns whether there is one. */
    public function touch(string $key, null|int|float|DateInterval $lifetime = null): bool
    {
        return $this->native->touch($this->prefix . $key, Lifetime::milliseconds($lifetime));
    }

    /** Removes an item. Returns whether there was one. */
    public function delete(string $key): bool
    {
        return $this->native->delete($this->prefix . $key);
    }

    /**
     * Removes items. Returns how many there were.
     *
     * @param iterable<string> $keys
     */
    public function deleteMany(iterable $keys): int
    {
        $deleted = 0;
        foreach (array_chunk(self::listed($keys), self::KEYS_MAX) as $some) {
            $deleted += $this->native->deleteMany($this->prefixed($some));
        }
        return $deleted;
    }

    /** Removes all items of all servers, whatever their prefix. */
    public function flush(): void
    {
        $this->native->flush();
    }

    /**
     * The value under a key; if there is none, it is computed and stored. Of all that ask at a time, in all processes, one
     * computes, and the others wait for it.
     *
     * If the server cannot be asked, the value is computed and not stored. One that cannot be read, of another release of the
     * program, say, is as none. If the computation throws, so does this, and one of those that wait computes. While one computes,
     * there is an empty string under the key.
     *
     * @param callable(): mixed $compute
     * @param float $lease how many seconds others wait; then another one computes
     * @param float|null $early when no more than so many seconds of its lifetime are left, one computes the value anew, and the
     *     others get the old one meanwhile
     */
    public function getOrCompute(
        string $key,
        callable $compute,
        null|int|float|DateInterval $lifetime = null,
        float $lease = 10,
        ?float $early = null,
    ): mixed {
        $key = $this->prefix . $key;
        $keep = Lifetime::milliseconds($lifetime);
        [$lease, $early] = [Lifetime::milliseconds($lease), Lifetime::milliseconds($early)];
        // The second time, if what there was could not be read. Then others store what this one cannot read.
        for ($times = 0;; $times++) {
            try {
                $status = $this->native->lease($key, $lease, $early, $bytes, $flags, $cas);
                if ($status === Native::COMPUTE) {
                    break;
                }
                return $this->unpacked($bytes, $flags);
            } catch (InvalidArgumentException $failure) {
                throw $failure;
            } catch (SerializationException | NotANumberException) {
                if ($times > 0) {
                    return $compute();
                }
                $this->attempt(fn () => $this->remove($key, $bytes));
            } catch (CacheException) {
                return $compute();
            }
        }
        $is_stored = $cas === 0;
        try {
            $value = $compute();
            if ($cas !== 0) {
                [$made, $flags] = $this->packed($value);
                $is_stored = $this->attempt(fn () => $this->native->cas($key, $made, $keep, $flags, $cas));
            }
            return $value;
        } finally {
            // Others wait for this one: now they need not.
            if (!$is_stored && $bytes === null) {
                $this->attempt(fn () => $this->native->deleteCas($key, $cas));
            }
        }
    }

    /** Removes the item under a key, with its prefix, that has these bytes. Returns whether there was one. */
    private function remove(string $key, string $bytes): bool
    {
        $there = $this->native->getItem($key, $flags, $cas, $left);
        return $there === $bytes && $this->native->deleteCas($key, $cas);
    }

    /** What a change came to whose failure changes nothing about a value. */
    private function attempt(callable $change): bool
    {
        try {
            return $change();
        } catch (CacheException) {
            return false;
        }
    }

    private function store(string $call, string $key, mixed $value, null|int|float|DateInterval $lifetime): bool
    {
        [$bytes, $flags] = $this->packed($value);
        return $this->native->store($call, $this->prefix . $key, $bytes, Lifetime::milliseconds($lifetime), $flags);
    }

    private function counted(string $call, string $key, int $by): ?int
    {
        if ($by < 0) {
            throw new InvalidArgumentException("a count by $by: it is 0 or more");
        }
        $number = $this->native->count($call, $this->prefix . $key, $by);
        // The library counts without signs.
        if ($number < 0) {
            throw new NotANumberException('the number is larger than PHP\'s integers');
        }
        return $number;
    }

    /** @return array{string, int} bytes and flags */
    private function packed(mixed $value): array
    {
        return match (true) {
            is_string($value) => [$value, 0],
            is_int($value) => [(string) $value, self::FLAGS_INTEGER],
            default => [$this->serializer->serialize($value), $this->flags],
        };
    }

    private function unpacked(string $bytes, int $flags): mixed
    {
        if (isset(self::FLAGS_STRING[$flags])) {
            return $bytes;
        }
        if ($flags === self::FLAGS_INTEGER) {
            // memcached leaves spaces behind a number that has become shorter.
            $digits = rtrim($bytes, ' ');
            $number = (int) $digits;
            return (string) $number === $digits ? $number : throw new NotANumberException("an integer, and no number of PHP's");
        }
        if ($flags === $this->flags) {
            return $this->serializer->unserialize($bytes);
        }
        throw new SerializationException("a value with the flags $flags: another serializer made it, or another client");
    }

    /** @return list<string> */
    private static function listed(iterable $keys): array
    {
        $list = [];
        foreach ($keys as $key) {
            $list[] = self::key($key);
        }
        return $list;
    }

    /** A key. PHP makes integers of keys of arrays that look like one. */
    private static function key(mixed $key): string
    {
        return is_string($key) || is_int($key) ? (string) $key : throw new InvalidArgumentException(
            'a key of the type ' . get_debug_type($key) . ': it is a string'
        );
    }

    /**
     * @param list<string> $keys
     * @return list<string>
     */
    private function prefixed(array $keys): array
    {
        return $this->prefix === '' ? $keys : array_map(fn (string $key) => $this->prefix . $key, $keys);
    }
}
