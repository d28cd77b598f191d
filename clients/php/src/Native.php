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
use Throwable;

use function count;
use function strlen;

/**
 * The library's calls, with bytes and flags for values. All that needs FFI is here and in Library, because only preloaded code
 * may use it in a web server.
 *
 * The library keeps the client of an address, with its connections, for as long as the process lives. The objects here go with
 * the request.
 *
 * The handler of a signal runs when a function of PHP or of the library returns, and may throw. If the result was to be the
 * argument of another call, PHP 8.2 frees arguments that are not there, and crashes. So results are variables first.
 *
 * @internal
 */
final class Native
{
    /** What calls return: nuthatch_client_status. */
    public const DONE = 0;
    public const COMPUTE = 4;

    /**
     * Where the library writes values: for each call that is under way its own, because the handler of a signal or a destructor
     * may call in the middle of another call.
     *
     * @var array<int, CData>
     */
    private array $slots = [];
    private int $depth = 0;

    /** @var array<string, self> */
    private static array $known = [];

    private function __construct(private readonly FFI $library, private readonly CData $client)
    {
        // Where a value is too large for PHP's memory, nothing else runs any more; and this process goes on.
        register_shutdown_function(fn () => array_map($this->free(...), $this->slots));
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
        $slot = $this->slots[$this->depth] ??= $this->library->new('nuthatch_client_value[1]');
        $place = $this->depth++;
        try {
            $status = $this->library->nuthatch_client_get_item($this->client, $key, strlen($key), $slot);
            $this->found($status);
            return self::bytes($slot[0], $flags);
        } finally {
            $this->depth = $place;
            $this->library->nuthatch_client_value_free($slot);
        }
    }

    /** The same, with the number for cas() and the seconds that are left, -1 without an end. */
    public function getItem(string $key, ?int &$flags, ?int &$cas, ?int &$left): ?string
    {
        return $this->lent(1, function (CData $slot) use ($key, &$flags, &$cas, &$left): ?string {
            $status = $this->library->nuthatch_client_get_item($this->client, $key, strlen($key), $slot);
            $this->found($status);
            [$cas, $left] = [$slot[0]->cas, $slot[0]->seconds_left];
            return self::bytes($slot[0], $flags);
        });
    }

    /** Whether there is an item. */
    public function has(string $key): bool
    {
        return $this->lent(1, function (CData $slot) use ($key): bool {
            $status = $this->library->nuthatch_client_get($this->client, $key, strlen($key), $slot);
            return $this->done($status);
        });
    }

    /**
     * The value under a key, or the task to compute it: DONE or COMPUTE.
     *
     * @param string|null $bytes the value, or the old one, if there is one
     * @param int|null $cas the number under which it is stored, 0: it is not to be stored
     */
    public function lease(string $key, int $lease, int $early, ?string &$bytes, ?int &$flags, ?int &$cas): int
    {
        return $this->lent(1, function (CData $slot) use ($key, $lease, $early, &$bytes, &$flags, &$cas): int {
            $status = $this->library->nuthatch_client_lease($this->client, $key, strlen($key), $lease, $early, $slot);
            $bytes = self::bytes($slot[0], $flags);
            $cas = $slot[0]->cas;
            return $this->found($status);
        });
    }

    /** Stores bytes by the call of this name: "set", "add" or "replace". False: not stored. */
    public function store(string $call, string $key, string $bytes, int $lifetime, int $flags): bool
    {
        $call = "nuthatch_client_$call";
        $status = $this->library->$call($this->client, $key, strlen($key), $bytes, strlen($bytes), $lifetime, $flags);
        return $this->done($status);
    }

    /** Stores bytes if the item has this number still. */
    public function cas(string $key, string $bytes, int $lifetime, int $flags, int $cas): bool
    {
        $status = $this->library->nuthatch_client_cas(
            $this->client,
            $key,
            strlen($key),
            $bytes,
            strlen($bytes),
            $lifetime,
            $flags,
            $cas
        );
        return $this->done($status);
    }

    /** Adds to a number or subtracts from it: "incr" or "decr". Null: there is none. */
    public function count(string $call, string $key, int $by): ?int
    {
        $call = "nuthatch_client_$call";
        $number = $this->library->new('uint64_t[1]');
        $status = $this->library->$call($this->client, $key, strlen($key), $by, $number);
        return $this->done($status) ? $number[0] : null;
    }

    /** Gives an item a lifetime. False: there is none. */
    public function touch(string $key, int $lifetime): bool
    {
        $status = $this->library->nuthatch_client_touch($this->client, $key, strlen($key), $lifetime);
        return $this->done($status);
    }

    /** Removes an item. False: there was none. */
    public function delete(string $key): bool
    {
        $status = $this->library->nuthatch_client_delete($this->client, $key, strlen($key));
        return $this->done($status);
    }

    /** Removes an item if it has this number still. */
    public function deleteCas(string $key, int $cas): bool
    {
        $status = $this->library->nuthatch_client_delete_cas($this->client, $key, strlen($key), $cas);
        return $this->done($status);
    }

    /** Removes all items of all servers. */
    public function flush(): void
    {
        $status = $this->library->nuthatch_client_flush_all($this->client);
        $this->done($status);
    }

    /**
     * The bytes and flags under keys, by their places.
     *
     * @param list<string> $keys
     * @param CacheException|null $failure why some are missing
     * @return array<int, array{string, int}>
     */
    public function getMany(array $keys, ?CacheException &$failure): array
    {
        $failure = null;
        if ($keys === []) {
            return [];
        }
        return $this->lent(count($keys), function (CData $slot) use ($keys, &$failure): array {
            $many = $this->keys($keys, $memory);
            $status = $this->library->nuthatch_client_get_many_items($this->client, $many, count($keys), $slot);
            $failure = $status >= 0 ? null : self::failure($this->library, $status);
            $found = [];
            foreach ($slot as $at => $value) {
                $bytes = self::bytes($value, $flags);
                if ($bytes !== null) {
                    $found[$at] = [$bytes, $flags];
                }
            }
            return $found;
        });
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
        $bytes = '';
        foreach ($items as [$key, $value]) {
            $bytes .= $key . $value;
        }
        $next = $this->copied($bytes, $memory);
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
        $status = $this->library->nuthatch_client_set_many($this->client, $entries, $count, null);
        $this->done($status);
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
        $status = $this->library->nuthatch_client_delete_many($this->client, $many, $count, $outcomes);
        $this->done($status);
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
        $bytes = implode('', $keys);
        $next = $this->copied($bytes, $memory);
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
        $room = max(1, $length);
        $memory = $this->library->new("char[$room]");
        FFI::memcpy($memory, $bytes, $length);
        return $this->library->cast('char *', $memory);
    }

    /** The bytes of a value, and its flags; null if it is none. */
    private static function bytes(CData $value, ?int &$flags): ?string
    {
        $flags = $value->flags;
        return $value->data === null ? null : FFI::string($value->data, $value->length);
    }

    /**
     * What a function returns that has room for so many values. What the library has written there is freed.
     *
     * @param callable(CData): mixed $function
     */
    private function lent(int $count, callable $function): mixed
    {
        $slot = $this->library->new("nuthatch_client_value[$count]");
        $place = $this->depth++;
        $this->slots[$place] = $slot;
        try {
            return $function($slot);
        } finally {
            unset($this->slots[$place]);
            $this->depth = $place;
            $this->free($slot);
        }
    }

    /** Frees what the library has written in a slot, whatever the handler of a signal throws meanwhile. */
    private function free(CData $slot): void
    {
        try {
            foreach ($slot as $value) {
                $address = FFI::addr($value);
                $this->library->nuthatch_client_value_free($address);
            }
        } catch (Throwable $thrown) {
            // What is freed is passed over.
            $this->free($slot);
            throw $thrown;
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
