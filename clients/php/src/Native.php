<?php

declare(strict_types=1);

namespace Nuthatch;

use FFI;
use FFI\CData;
use Nuthatch\Exception\CacheException;
use Nuthatch\Exception\InvalidArgumentException;
use Nuthatch\Exception\LibraryException;
use Nuthatch\Exception\NoReplyException;
use Nuthatch\Exception\NotANumberException;
use Nuthatch\Exception\NotSentException;
use Nuthatch\Exception\RefusedException;

/**
 * The library's calls, with bytes and flags for values. All that needs FFI is here and in Library, because only preloaded code
 * may use it in a web server.
 *
 * The library keeps the client of an address, with its connections, for as long as the process lives. The objects here go with
 * the request.
 *
 * @internal
 */
final class Native
{
    /** What calls return: nuthatch_client_status. */
    public const DONE = 0;
    public const NOT_FOUND = 1;
    public const COMPUTE = 4;

    /** A value that was found. */
    private readonly CData $value;
    private readonly CData $valuePointer;
    private readonly CData $number;
    private readonly CData $numberPointer;
    /** The values of a call with many keys, which begins with nothing. */
    private ?CData $values = null;
    private int $count = 0;

    /** @var array<string, self> */
    private static array $known = [];

    private function __construct(private readonly FFI $library, private readonly CData $client)
    {
        $this->value = $library->new('nuthatch_client_value');
        $this->valuePointer = FFI::addr($this->value);
        $this->number = $library->new('uint64_t');
        $this->numberPointer = FFI::addr($this->number);
        // Where a value is too large for PHP's memory, nothing else runs any more; and this process goes on.
        register_shutdown_function($this->free(...));
    }

    /** The client of an address. */
    public static function of(string $address, ?string $file): self
    {
        return self::$known[$file . "\n" . $address] ??= self::connect($address, $file);
    }

    private static function connect(string $address, ?string $file): self
    {
        if (str_contains($address, "\0")) {
            throw new InvalidArgumentException('an address has no zero bytes');
        }
        $library = Library::load($file);
        $client = $library->new('nuthatch_client *');
        $status = $library->nuthatch_client_of_process($address, FFI::addr($client));
        if ($status !== self::DONE) {
            throw self::failure($library, $status);
        }
        return new self($library, $client);
    }

    /** The library's version. */
    public function version(): string
    {
        return $this->library->nuthatch_client_version();
    }

    /** The bytes under a key, and their flags. Null: there are none. */
    public function get(string $key, ?int &$flags): ?string
    {
        $status = $this->library->nuthatch_client_get_item($this->client, $key, strlen($key), $this->valuePointer);
        return $this->found($status) === self::DONE ? $this->taken($flags) : null;
    }

    /** The same, with the number for cas() and the seconds that are left, -1 without an end. */
    public function getItem(string $key, ?int &$flags, ?int &$cas, ?int &$left): ?string
    {
        $status = $this->library->nuthatch_client_get_item($this->client, $key, strlen($key), $this->valuePointer);
        if ($this->found($status) !== self::DONE) {
            return null;
        }
        [$cas, $left] = [$this->value->cas, $this->value->seconds_left];
        return $this->taken($flags);
    }

    /** Whether there is an item. */
    public function has(string $key): bool
    {
        $status = $this->library->nuthatch_client_get($this->client, $key, strlen($key), $this->valuePointer);
        $this->free();
        return $this->found($status) === self::DONE;
    }

    /**
     * The value under a key, or the task to compute it: DONE or COMPUTE.
     *
     * @param string|null $bytes the value, or the old one, if there is one
     * @param int|null $cas the number under which it is stored, 0: it is not to be stored
     */
    public function lease(string $key, int $lease, int $early, ?string &$bytes, ?int &$flags, ?int &$cas): int
    {
        $status = $this->library->nuthatch_client_lease($this->client, $key, strlen($key), $lease, $early, $this->valuePointer);
        $cas = $this->value->cas;
        $bytes = FFI::isNull($this->value->data) ? null : $this->taken($flags);
        return $this->found($status);
    }

    /** Stores bytes by the call of this name: "set", "add" or "replace". False: not stored. */
    public function store(string $call, string $key, string $bytes, int $lifetime, int $flags): bool
    {
        $call = "nuthatch_client_$call";
        return $this->done(
            $this->library->$call($this->client, $key, strlen($key), $bytes, strlen($bytes), $lifetime, $flags)
        );
    }

    /** Stores bytes if the item has this number still. */
    public function cas(string $key, string $bytes, int $lifetime, int $flags, int $cas): bool
    {
        return $this->done($this->library->nuthatch_client_cas(
            $this->client,
            $key,
            strlen($key),
            $bytes,
            strlen($bytes),
            $lifetime,
            $flags,
            $cas
        ));
    }

    /** Adds to a number or subtracts from it: "incr" or "decr". Null: there is none. */
    public function count(string $call, string $key, int $by): ?int
    {
        $call = "nuthatch_client_$call";
        $is_there = $this->done($this->library->$call($this->client, $key, strlen($key), $by, $this->numberPointer));
        return $is_there ? $this->number->cdata : null;
    }

    /** Gives an item a lifetime. False: there is none. */
    public function touch(string $key, int $lifetime): bool
    {
        return $this->done($this->library->nuthatch_client_touch($this->client, $key, strlen($key), $lifetime));
    }

    /** Removes an item. False: there was none. */
    public function delete(string $key): bool
    {
        return $this->done($this->library->nuthatch_client_delete($this->client, $key, strlen($key)));
    }

    /** Removes an item if it has this number still. */
    public function deleteCas(string $key, int $cas): bool
    {
        return $this->done($this->library->nuthatch_client_delete_cas($this->client, $key, strlen($key), $cas));
    }

    /** Removes all items of all servers. */
    public function flush(): void
    {
        $this->done($this->library->nuthatch_client_flush_all($this->client));
    }

    /**
     * The bytes and flags under keys, by their places.
     *
     * @param list<string> $keys
     * @return array<int, array{string, int}>
     */
    public function getMany(array $keys): array
    {
        if ($keys === []) {
            return [];
        }
        $memory = null;
        $many = $this->keys($keys, $memory);
        $count = count($keys);
        $found = [];
        try {
            $this->values = $this->library->new("nuthatch_client_value[$count]");
            $this->count = $count;
            $this->done($this->library->nuthatch_client_get_many_items($this->client, $many, $count, $this->values));
            for ($at = 0; $at < $count; $at++) {
                $value = $this->values[$at];
                if (!FFI::isNull($value->data)) {
                    $found[$at] = [FFI::string($value->data, $value->length), $value->flags];
                }
            }
        } finally {
            $this->free();
        }
        return $found;
    }

    /**
     * Stores items of key, bytes and flags.
     *
     * @param list<array{string, string, int}> $items
     */
    public function setMany(array $items, int $lifetime): void
    {
        if ($items === []) {
            return;
        }
        $count = count($items);
        $next = $this->copied(implode('', array_map(static fn (array $item) => $item[0] . $item[1], $items)), $memory);
        $entries = $this->library->new("nuthatch_client_entry[$count]");
        foreach ($items as $at => [$key, $bytes, $flags]) {
            $entry = $entries[$at];
            $entry->key = $next;
            $entry->key_length = strlen($key);
            $next += strlen($key);
            $entry->value = $next;
            $entry->value_length = strlen($bytes);
            $next += strlen($bytes);
            $entry->lifetime_ms = $lifetime;
            $entry->flags = $flags;
        }
        $this->done($this->library->nuthatch_client_set_many($this->client, $entries, $count, null));
    }

    /**
     * Removes items, and returns how many there were.
     *
     * @param list<string> $keys
     */
    public function deleteMany(array $keys): int
    {
        if ($keys === []) {
            return 0;
        }
        $many = $this->keys($keys, $memory);
        $count = count($keys);
        $outcomes = $this->library->new("int[$count]");
        $this->done($this->library->nuthatch_client_delete_many($this->client, $many, $count, $outcomes));
        $deleted = 0;
        for ($at = 0; $at < $count; $at++) {
            $deleted += (int) ($outcomes[$at] === self::DONE);
        }
        return $deleted;
    }

    /**
     * Keys as the library takes many.
     *
     * @param list<string> $keys
     * @param CData|null $memory their bytes, which the caller holds for as long
     */
    private function keys(array $keys, ?CData &$memory): CData
    {
        $next = $this->copied(implode('', $keys), $memory);
        $many = $this->library->new('nuthatch_client_key[' . count($keys) . ']');
        foreach ($keys as $at => $key) {
            $one = $many[$at];
            $one->data = $next;
            $one->length = strlen($key);
            $next += strlen($key);
        }
        return $many;
    }

    /** A pointer to a copy of these bytes. */
    private function copied(string $bytes, ?CData &$memory): CData
    {
        $length = strlen($bytes);
        // There is no memory of no bytes.
        $memory = $this->library->new('char[' . max(1, $length) . ']');
        FFI::memcpy($memory, $bytes, $length);
        return $this->library->cast('char *', $memory);
    }

    /** The bytes that were found; the library's memory is freed. */
    private function taken(?int &$flags): string
    {
        $value = $this->value;
        $flags = $value->flags;
        $bytes = FFI::string($value->data, $value->length);
        $this->library->nuthatch_client_value_free($this->valuePointer);
        return $bytes;
    }

    /** Frees what the library has given and nobody has taken. */
    private function free(): void
    {
        $this->library->nuthatch_client_value_free($this->valuePointer);
        [$values, $count] = [$this->values, $this->count];
        [$this->values, $this->count] = [null, 0];
        for ($at = 0; $at < $count; $at++) {
            $this->library->nuthatch_client_value_free(FFI::addr($values[$at]));
        }
    }

    /** Whether a change was made. */
    private function done(int $status): bool
    {
        return $this->found($status) === self::DONE;
    }

    /** A status that is no failure. */
    private function found(int $status): int
    {
        return $status >= 0 ? $status : throw self::failure($this->library, $status);
    }

    /** What a failure is here. */
    private static function failure(FFI $library, int $status): CacheException
    {
        $words = $library->nuthatch_client_error();
        return match ($status) {
            -2 => new InvalidArgumentException($words),
            -3 => new NotSentException($words),
            -4 => new NoReplyException($words),
            -5 => new RefusedException($words),
            -6 => new NotANumberException($words),
            default => new LibraryException($words),
        };
    }
}
