<?php

declare(strict_types=1);

use Nuthatch\Client;
use Nuthatch\Exception\CacheException;
use Nuthatch\Exception\InvalidArgumentException;
use Nuthatch\Exception\LibraryException;
use Nuthatch\Exception\NotANumberException;
use Nuthatch\Exception\RefusedException;
use Nuthatch\Exception\SerializationException;
use PHPUnit\Framework\TestCase;

/** Each call, by each way to a server. */
final class ClientTest extends TestCase
{
    private static ?Server $unix = null;
    private static ?Server $tcp = null;

    public static function setUpBeforeClass(): void
    {
        [self::$unix, self::$tcp] = [new Server('unix'), new Server('tcp')];
    }

    public static function tearDownAfterClass(): void
    {
        [self::$unix, self::$tcp] = [null, null];
    }

    public function ways(): array
    {
        return ['unix' => ['unix'], 'shm' => ['shm'], 'tcp' => ['tcp']];
    }

    private function client(string $way, mixed ...$options): Client
    {
        $client = new Client(($way === 'tcp' ? self::$tcp : self::$unix)->address($way), ...$options);
        $client->flush();
        return $client;
    }

    /** @dataProvider ways */
    public function testStringsAreKeptAsTheyAre(string $way): void
    {
        $client = $this->client($way);
        self::assertNull($client->get('k'));
        self::assertSame('other', $client->get('k', 'other'));
        foreach (['value', '', "\0\r\n\xff", '123', str_repeat('x', 900_000)] as $value) {
            $client->set('k', $value);
            self::assertSame($value, $client->get('k'));
            self::assertTrue($client->has('k'));
        }
        self::assertTrue($client->delete('k'));
        self::assertFalse($client->delete('k'));
        self::assertFalse($client->has('k'));
    }

    /** @dataProvider ways */
    public function testValuesComeBackOfTheirType(string $way): void
    {
        $values = [0, -5, PHP_INT_MIN, PHP_INT_MAX, 1.5, 2.0, true, false, null, [], ['a' => [1, null, 'x']], 'ä'];
        foreach (['php', 'json', 'igbinary'] as $serializer) {
            if ($serializer === 'igbinary' && !extension_loaded('igbinary')) {
                continue;
            }
            $client = $this->client($way, serializer: $serializer, allowedClasses: $serializer === 'igbinary');
            foreach ($values as $number => $value) {
                $client->set("k$number", $value, 60);
                self::assertSame($value, $client->get("k$number", 'none'));
                self::assertSame($value, $client->getItem("k$number")->value);
            }
        }
    }

    /** @dataProvider ways */
    public function testManyKeysTravelTogether(string $way): void
    {
        $client = $this->client($way, prefix: 'of mine ');
        self::assertSame([], $client->getMany([]));
        self::assertSame(0, $client->deleteMany([]));
        $client->setMany([]);
        $values = [];
        for ($number = 0; $number < 3000; $number++) {
            $values["key $number"] = $number % 2 ? $number : [$number];
        }
        $client->setMany((fn () => yield from $values)(), 60);
        $client->delete('key 7');
        unset($values['key 7']);
        self::assertSame($values, $client->getMany([...array_map(strval(...), array_keys($values)), 'none']));
        self::assertSame(2, $client->deleteMany(new ArrayIterator(['key 8', 'none', 'key 9'])));
        // PHP makes integers of such keys.
        $client->setMany(['5' => '', '6' => 'six']);
        self::assertSame([5 => '', 6 => 'six'], $client->getMany(['5', '6']));
    }

    /** @dataProvider ways */
    public function testLargeValuesOfManyKeysAreStoredInParts(string $way): void
    {
        $client = $this->client($way);
        $values = [];
        for ($number = 0; $number < 20; $number++) {
            $values["k$number"] = str_repeat(chr(65 + $number), 900_000);
        }
        $client->setMany($values);
        self::assertSame($values, $client->getMany(array_keys($values)));
    }

    /** @dataProvider ways */
    public function testChangesDependOnWhatThereIs(string $way): void
    {
        $client = $this->client($way);
        self::assertFalse($client->replace('k', 1));
        self::assertTrue($client->add('k', 2));
        self::assertFalse($client->add('k', 3));
        $item = $client->getItem('k');
        self::assertSame([2, null], [$item->value, $item->left]);
        self::assertTrue($client->replace('k', 4, 60));
        self::assertFalse($client->cas('k', 5, $item->cas));
        $item = $client->getItem('k');
        self::assertTrue($client->cas('k', 5, $item->cas));
        self::assertSame(5, $client->get('k'));
        self::assertFalse($client->cas('none', 5, $item->cas));
        self::assertNull($client->getItem('none'));
    }

    /** @dataProvider ways */
    public function testCounts(string $way): void
    {
        $client = $this->client($way);
        self::assertNull($client->increment('n'));
        self::assertNull($client->decrement('n'));
        $client->set('n', 7);
        self::assertSame(17, $client->increment('n', 10));
        self::assertSame(17, $client->get('n'));
        self::assertSame(8, $client->decrement('n', 9));
        self::assertSame(8, $client->get('n'));
        self::assertSame(0, $client->decrement('n', 100));
        $client->set('n', PHP_INT_MAX);
        $this->fails(NotANumberException::class, fn () => $client->increment('n'));
        $this->fails(NotANumberException::class, fn () => $client->get('n'));
        $client->set('text', 'x');
        $this->fails(NotANumberException::class, fn () => $client->increment('text'));
        $this->fails(InvalidArgumentException::class, fn () => $client->increment('n', -1));
    }

    /** @dataProvider ways */
    public function testLifetimesEnd(string $way): void
    {
        $client = $this->client($way);
        $client->set('short', 'v', 0.001);
        $client->set('day', 'v', new DateInterval('P1D'));
        self::assertEqualsWithDelta(86400, $client->getItem('day')->left, 5);
        self::assertTrue($client->touch('day', 600));
        self::assertLessThanOrEqual(600, $client->getItem('day')->left);
        self::assertTrue($client->touch('day'));
        self::assertNull($client->getItem('day')->left);
        self::assertFalse($client->touch('none', 600));
        $client->set('long', 'v', PHP_INT_MAX);
        self::assertSame('v', $client->get('long'));
        // Whatever part of a second it is now.
        $half = DateInterval::createFromDateString('500 milliseconds');
        self::assertEqualsWithDelta(0.5, Nuthatch\Lifetime::seconds($half), 1e-6);
        $client->set('half', 'v', $half);
        self::assertSame(1, $client->getItem('half')?->left ?? 1);
        Wait::until('the end of a lifetime', fn () => !$client->has('short'));
        foreach ([0, -1, -0.5, NAN, -INF] as $wrong) {
            $this->fails(InvalidArgumentException::class, fn () => $client->set('k', 'v', $wrong));
        }
        self::assertFalse($client->has('k'));
    }

    /** @dataProvider ways */
    public function testWrongKeysAndValuesAreTold(string $way): void
    {
        $client = $this->client($way);
        foreach (['', str_repeat('k', 251), str_repeat(' ', 187)] as $key) {
            $this->fails(InvalidArgumentException::class, fn () => $client->get($key));
            $this->fails(InvalidArgumentException::class, fn () => $client->has($key));
            $this->fails(InvalidArgumentException::class, fn () => $client->set($key, 'v'));
            $this->fails(InvalidArgumentException::class, fn () => $client->getMany(['k', $key]));
            $this->fails(InvalidArgumentException::class, fn () => $client->setMany([$key => 'v']));
            $this->fails(InvalidArgumentException::class, fn () => $client->deleteMany([$key]));
            $this->fails(InvalidArgumentException::class, fn () => $client->getOrCompute($key, fn () => 'v'));
        }
        foreach ([str_repeat('k', 250), "white \0\r\n space", "\xff"] as $key) {
            $client->set($key, 'v');
            self::assertSame('v', $client->get($key));
            self::assertSame([$key => 'v'], $client->getMany([$key]));
        }
        $this->fails(TypeError::class, fn () => $client->get([]));
        $this->fails(TypeError::class, fn () => $client->set('k', 'v', '60'));
        $this->fails(InvalidArgumentException::class, fn () => $client->getMany([[]]));
        // Larger than the server takes.
        $large = str_repeat('x', 5 << 20);
        $this->fails(RefusedException::class, fn () => $client->set('large', $large));
        $this->fails(RefusedException::class, fn () => $client->setMany(['a' => 'v', 'large' => $large]));
        self::assertSame('v', $client->get('a'));
        self::assertSame($large, $client->getOrCompute('large', fn () => $large));
        self::assertSame('next', $client->getOrCompute('large', fn () => 'next'));
    }

    /**
     * Of another release of the program, say.
     *
     * @dataProvider ways
     */
    public function testAValueThatCannotBeReadIsToldOrComputedAnew(string $way): void
    {
        $client = $this->client($way);
        $other = new Client(($way === 'tcp' ? self::$tcp : self::$unix)->address($way), 'json');
        $other->set('k', [1]);
        $client->set('readable', 'v');
        $this->fails(SerializationException::class, fn () => $client->get('k'));
        $this->fails(SerializationException::class, fn () => $client->getMany(['k', 'readable']));
        $told = [];
        self::assertSame(['readable' => 'v'], $client->getMany(['k', 'readable', 'none'], function (CacheException $failure) use (&$told) {
            $told[] = $failure::class;
        }));
        self::assertSame([SerializationException::class], $told);
        self::assertSame([2], $client->getOrCompute('k', fn () => [2], 60));
        self::assertSame([2], $client->get('k'));
        self::assertSame([2], $client->getOrCompute('k', fn () => self::fail('computed again'), 60));
        // Others store theirs while this one computes: it has its own value, and theirs stays.
        self::assertSame([3], $other->getOrCompute('k', function () use ($client, $other): array {
            self::assertSame([4], $client->getOrCompute('k', fn () => [4], 60, lease: 1));
            $other->set('k', [5]);
            return [3];
        }, 60));
        self::assertSame([5], $other->get('k'));
        $other->flush();
    }

    public function testWrongOptionsAreTold(): void
    {
        foreach (['', 'http://a', "unix:///a\0b", 'tcp://a?timeout_ms=x', "tcp://\xff"] as $address) {
            $this->fails(InvalidArgumentException::class, fn () => new Client($address));
        }
        $address = self::$unix->address('unix');
        $this->fails(InvalidArgumentException::class, fn () => new Client($address, 'yaml'));
        $this->fails(InvalidArgumentException::class, fn () => new Client($address, 'igbinary'));
        $this->fails(LibraryException::class, fn () => new Client($address, library: '/none.so'));
        $small = new Client("$address?value_max=1000");
        $this->fails(InvalidArgumentException::class, fn () => $small->set('k', str_repeat('x', 1001)));
    }

    public function testClientsOfOneAddressShareTheirConnection(): void
    {
        $address = self::$tcp->address('tcp');
        (new Client($address))->get('k');
        $before = self::$tcp->statistic('total_connections');
        for ($round = 0; $round < 10; $round++) {
            (new Client($address, 'json', prefix: "$round"))->get('k');
        }
        // Who asked for the statistics.
        self::assertSame($before + 1, self::$tcp->statistic('total_connections'));
    }

    /** A value that PHP's memory has no room for is freed, and the next one is read. */
    public function testValuesLargerThanPhpsMemoryEndOneRequestOnly(): void
    {
        $address = self::$unix->address('unix');
        (new Client($address))->set('large', str_repeat('x', 900_000));
        $program = '
            require $argv[1];
            $client = new Nuthatch\Client($argv[2]);
            register_shutdown_function(function () use ($client) {
                fwrite(STDOUT, strlen($client->get("large")) . " " . $client->version());
            });
            ini_set("memory_limit", (memory_get_usage(true) + 100_000) . "");
            $held = [];
            for (;;) {
                $held[] = $client->get("large");
            }';
        $process = proc_open(
            [PHP_BINARY, '-d', 'display_errors=stderr', '-r', $program, __DIR__ . '/../autoload.php', $address],
            [1 => ['pipe', 'w'], 2 => ['pipe', 'w']],
            $pipes
        );
        self::assertStringContainsString('Allowed memory size', stream_get_contents($pipes[2]));
        proc_close($process);
    }

    private function fails(string $class, callable $call): void
    {
        try {
            $call();
        } catch (Throwable $failure) {
            self::assertInstanceOf($class, $failure, (string) $failure);
            self::assertNotSame('', $failure->getMessage());
            return;
        }
        self::fail("no $class");
    }
}
