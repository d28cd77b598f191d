<?php

declare(strict_types=1);

use Nuthatch\Client;
use Nuthatch\Exception\CacheException;
use Nuthatch\Exception\NoReplyException;
use Nuthatch\Exception\NotSentException;
use Nuthatch\Exception\SerializationException;
use Nuthatch\SimpleCache;
use PHPUnit\Framework\TestCase;

/** Servers that are dead, end, are silent or lie. */
final class FailureTest extends TestCase
{
    /** Pauses are short, because servers begin again. */
    private const SOON = 'retry_least_ms=1&retry_most_ms=20';

    private function dead(): string
    {
        return 'unix:///nowhere/' . bin2hex(random_bytes(4));
    }

    public function testADeadServerIsTold(): void
    {
        $client = new Client($this->dead());
        $calls = [
            fn () => $client->get('k'), fn () => $client->has('k'), fn () => $client->getItem('k'), fn () => $client->getMany(['k']),
            fn () => $client->set('k', 'v'), fn () => $client->setMany(['k' => 'v']), fn () => $client->increment('k'),
            fn () => $client->delete('k'), fn () => $client->deleteMany(['k']), fn () => $client->touch('k'), fn () => $client->flush(),
        ];
        foreach ($calls as $call) {
            try {
                $call();
                self::fail('no failure');
            } catch (NotSentException $failure) {
                self::assertStringContainsString('is down', $failure->getMessage());
            }
        }
        self::assertSame('v', $client->getOrCompute('k', fn () => 'v'));
        $this->expectExceptionMessage('of the computation');
        $client->getOrCompute('k', fn () => throw new LogicException('of the computation'));
    }

    public function testPsr16GoesOnWithoutAServer(): void
    {
        $failures = [];
        $cache = new SimpleCache(new Client($this->dead()), 60, function (CacheException $failure) use (&$failures) {
            $failures[] = $failure::class;
        });
        self::assertSame('default', $cache->get('k', 'default'));
        self::assertSame(['k' => 1], $cache->getMultiple(['k'], 1));
        $changes = [
            $cache->has('k'), $cache->set('k', 'v'), $cache->set('k', 'v', 0), $cache->setMultiple(['k' => 'v']), $cache->delete('k'),
            $cache->deleteMultiple(['k']), $cache->clear(),
        ];
        self::assertSame(array_fill(0, 7, false), $changes);
        self::assertSame(array_fill(0, 9, NotSentException::class), $failures);
        // Nor does a value that has no form, or an object, stop a program.
        self::assertFalse($cache->set('k', fn () => 1));
        self::assertFalse($cache->set('k', new stdClass()));
    }

    /** The kind of fault is one server, or one value, without which there is nothing of all others. */
    public function testOfManyValuesThoseThatAreThereAreGiven(): void
    {
        $server = new Server('tcp');
        $client = new Client($server->address('tcp') . ',127.0.0.1:' . Wait::port());
        $there = [];
        for ($number = 0; $number < 3000; $number++) {
            if ($this->attempt(fn () => $client->set("k$number", $number)) !== CacheException::class) {
                $there["k$number"] = $number;
            }
        }
        self::assertGreaterThan(0, count($there));
        self::assertLessThan(3000, count($there));
        $keys = array_map(fn (int $number) => "k$number", range(0, 2999));
        self::assertSame(CacheException::class, $this->attempt(fn () => $client->getMany($keys)));
        $told = [];
        $cache = new SimpleCache($client, null, function (CacheException $failure) use (&$told) {
            $told[] = $failure::class;
        });
        self::assertSame($there, array_filter($cache->getMultiple($keys), is_int(...)));
        self::assertSame([NotSentException::class], array_unique($told));
        // A value of which this one knows nothing.
        $key = array_key_first($there);
        (new Client($server->address('tcp'), 'json'))->set($key, []);
        self::assertSame([$key => null] + $there, $cache->getMultiple(array_keys($there)));
        self::assertContains(SerializationException::class, $told);
    }

    public function ways(): array
    {
        return ['unix' => ['unix'], 'shm' => ['shm'], 'tcp' => ['tcp']];
    }

    /** @dataProvider ways */
    public function testAServerThatIsKilledAndBeginsAgainIsUsedAgain(string $way): void
    {
        $server = new Server($way === 'tcp' ? 'tcp' : 'unix');
        $address = $server->address($way);
        $client = new Client($address . (str_contains($address, '?') ? '&' : '?') . self::SOON);
        $client->set('k', 'old');
        self::assertSame('old', $client->get('k'));
        $server->stop(SIGKILL);
        $fails = function () use ($client): bool {
            try {
                $client->set('k', 'v');
                return false;
            } catch (NotSentException | NoReplyException) {
                return true;
            }
        };
        Wait::until('the failure of a call', $fails);
        $server->start();
        Wait::until('a call that succeeds', fn () => !$fails());
        Wait::until('the new value', fn () => $client->get('k') === 'v');
    }

    /** @return array{string, resource} an address, and a socket on which a test is the server */
    private function socket(string $options): array
    {
        $folder = Wait::folder();
        $socket = stream_socket_server("unix://$folder/socket");
        register_shutdown_function(fn () => Wait::remove($folder));
        return ["unix://$folder/socket?$options", $socket];
    }

    public function testASilentServerIsTold(): void
    {
        $server = new Server('tcp');
        $client = new Client($server->address('tcp') . '?timeout_ms=50');
        $client->set('k', 'v');
        $server->suspend();
        try {
            $client->set('k', 'new');
            self::fail('no failure');
        } catch (NoReplyException $failure) {
            self::assertStringContainsString('may have been', $failure->getMessage());
        }
        self::assertSame('computed', $client->getOrCompute('k', fn () => 'computed'));
        $server->signal(SIGCONT);
        Wait::until('the change', fn () => $this->attempt(fn () => $client->get('k')) === 'new');
        // One that is silent from the beginning.
        [$address, $socket] = $this->socket('timeout_ms=50&connect_timeout_ms=50');
        self::assertSame(CacheException::class, $this->attempt(fn () => (new Client($address))->set('k', 'v')));
        fclose($socket);
    }

    /** What a call returns, or that it fails. */
    private function attempt(callable $call): mixed
    {
        try {
            return $call();
        } catch (CacheException) {
            return CacheException::class;
        }
    }

    /** The kind of fault is a reply that is none, or is to something else. */
    public function testALyingServerGivesNoValue(): void
    {
        $lies = ["VA 3 f0\r\nabc\r\n", "HD\r\n", "garbage\r\n", str_repeat('x', 5000), "VA 99999999999 f0\r\n", "VA 5 f0 O123\r\nwrong\r\n", ''];
        foreach ($lies as $lie) {
            [$address, $socket] = $this->socket('timeout_ms=500&' . self::SOON);
            $child = pcntl_fork();
            if ($child === 0) {
                // All connections are answered alike, and then closed.
                while ($connection = @stream_socket_accept($socket, 60)) {
                    fread($connection, 4096);
                    @fwrite($connection, $lie);
                    fclose($connection);
                }
                posix_kill(posix_getpid(), SIGKILL);
            }
            try {
                $value = (new Client($address))->get('k');
                self::fail('a value: ' . var_export($value, true));
            } catch (CacheException $failure) {
                self::assertNotSame('', $failure->getMessage());
            } finally {
                posix_kill($child, SIGKILL);
                pcntl_waitpid($child, $status);
            }
        }
    }
}
