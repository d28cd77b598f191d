<?php

declare(strict_types=1);

use Nuthatch\Client;
use Nuthatch\Exception\CacheException;
use PHPUnit\Framework\TestCase;

/** Several processes: children of a fork, and one that computes for all. */
final class ProcessTest extends TestCase
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

    private function client(string $way): Client
    {
        return new Client(($way === 'tcp' ? self::$tcp : self::$unix)->address($way));
    }

    /**
     * Runs a function in children, and fails if it does not return true in all of them.
     *
     * @param callable(int): bool $function
     */
    private function children(int $count, callable $function, ?callable $parent = null): void
    {
        $children = [];
        for ($number = 0; $number < $count; $number++) {
            $child = pcntl_fork();
            if ($child === 0) {
                $is_right = false;
                try {
                    $is_right = $function($number);
                } catch (Throwable $failure) {
                    fwrite(STDERR, "$failure\n");
                }
                // Without what the parent has to do at its end; the code says whether it was right.
                pcntl_exec('/bin/sh', ['-c', $is_right ? 'exit 7' : 'exit 1']);
            }
            $children[] = $child;
        }
        if ($parent !== null) {
            $parent();
        }
        foreach ($children as $child) {
            pcntl_waitpid($child, $status);
            self::assertSame(7, pcntl_wexitstatus($status));
        }
    }

    /** @dataProvider ways */
    public function testAChildHasItsOwnConnections(string $way): void
    {
        $client = $this->client($way);
        $client->set('parent', 'v');
        $calls = function (string $who) use ($client): bool {
            for ($round = 0; $round < 300; $round++) {
                $key = "$who " . $round % 10;
                $client->set($key, "$who $round");
                if ($client->get($key) !== "$who $round" || $client->getMany([$key]) !== [$key => "$who $round"]) {
                    return false;
                }
            }
            return $client->get('parent') === 'v';
        };
        // All at once, each with the object that it has from its parent.
        $this->children(3, fn (int $number) => $calls("child $number"), fn () => self::assertTrue($calls('parent itself')));
        self::assertSame('child 2 299', $client->get('child 2 9'));
    }

    /** @dataProvider ways */
    public function testOneProcessComputesForAll(string $way): void
    {
        $client = $this->client($way);
        $client->flush();
        $client->set('computed', 0);
        $this->children(4, function () use ($client): bool {
            for ($number = 0; $number < 5; $number++) {
                $value = $client->getOrCompute("k$number", function () use ($client, $number): array {
                    $client->increment('computed');
                    usleep(50_000);
                    return ['number' => $number];
                }, 60);
                if ($value !== ['number' => $number]) {
                    return false;
                }
            }
            return true;
        });
        self::assertSame(5, $client->get('computed'));
    }

    /** @dataProvider ways */
    public function testAComputationThatFailsLetsTheNextOneCompute(string $way): void
    {
        $client = $this->client($way);
        $client->flush();
        $failures = [
            fn () => throw new LogicException('no database'),
            // No bytes can be made of it.
            fn () => fn () => 1,
            fn () => new stdClass(),
        ];
        foreach ($failures as $number => $compute) {
            try {
                $client->getOrCompute('k', $compute, 60, lease: 60);
                self::fail("$number did not fail");
            } catch (LogicException | Nuthatch\Exception\SerializationException) {
                self::assertFalse($client->has('k'));
            }
        }
        self::assertNull($client->getOrCompute('k', fn () => null, 60, lease: 60));
        self::assertNull($client->getOrCompute('k', fn () => self::fail('computed again'), 60));
        // Who computes dies: the others wait for the time of the lease.
        $child = pcntl_fork();
        if ($child === 0) {
            $client->getOrCompute('d', fn () => posix_kill(posix_getpid(), SIGKILL), 60, lease: 1);
        }
        pcntl_waitpid($child, $status);
        self::assertTrue(pcntl_wifsignaled($status));
        self::assertSame('v', $client->getOrCompute('d', fn () => 'v', 60));
    }

    /** @dataProvider ways */
    public function testAValueIsComputedBeforeItExpires(string $way): void
    {
        $client = $this->client($way);
        $client->set('early', 'old', 20);
        self::assertSame('old', $client->getOrCompute('early', fn () => 'new', 60, early: 10));
        // One has the task, and the others have the old value meanwhile.
        $value = $client->getOrCompute('early', function () use ($client): string {
            self::assertSame('old', $client->getOrCompute('early', fn () => 'another', 60, early: 30));
            return 'new';
        }, 60, early: 30);
        self::assertSame('new', $value);
        self::assertSame('new', $client->getOrCompute('early', fn () => 'newest', 60, early: 30));
        // If it fails, the old one stays.
        try {
            $client->getOrCompute('early', fn () => throw new LogicException(), 60, early: 90);
        } catch (LogicException) {
            self::assertSame('new', $client->get('early'));
        }
    }

    /** @dataProvider ways */
    public function testSignalsMayCallInTheMiddleOfACall(string $way): void
    {
        $client = $this->client($way);
        $client->set('k', 'mine');
        $client->set('other', 'another');
        $handled = 0;
        pcntl_async_signals(true);
        pcntl_signal(SIGUSR1, function () use ($client, &$handled): void {
            self::assertSame('another', $client->get('other'));
            self::assertSame(['other' => 'another'], $client->getMany(['other', 'none']));
            $handled++;
        });
        $parent = posix_getpid();
        $child = pcntl_fork();
        if ($child === 0) {
            pcntl_signal(SIGUSR1, SIG_IGN);
            while (posix_kill($parent, SIGUSR1)) {
                usleep(random_int(10, 100));
            }
            posix_kill(posix_getpid(), SIGKILL);
        }
        try {
            while ($handled < 500) {
                self::assertSame('mine', $client->get('k'));
                self::assertSame(['k' => 'mine'], $client->getMany(['k']));
                self::assertSame('mine', $client->getItem('k')->value);
            }
        } finally {
            pcntl_signal(SIGUSR1, SIG_IGN);
            posix_kill($child, SIGKILL);
            pcntl_waitpid($child, $status);
        }
    }

    /** What a program does that bounds its calls by an alarm. A crash of PHP is the kind of fault, or a call that leaves no order. */
    public function testSignalsMayThrowWhenACallReturns(): void
    {
        $server = new Server('unix');
        $client = new Client($server->address('unix') . '?timeout_ms=10&late_max_ms=600000&retry_most_ms=1');
        $this->children(1, function () use ($client, $server): bool {
            Wait::until('an answer', function () use ($client): bool {
                try {
                    return $client->get('none', 'none') === 'none';
                } catch (CacheException) {
                    return false;
                }
            });
            $server->suspend();
            $parent = posix_getpid();
            $thrown = 0;
            pcntl_async_signals(true);
            $handler = fn () => throw new LogicException('the time is over');
            $calls = [
                fn () => $client->get('k'), fn () => $client->getItem('k'), fn () => $client->getMany(['k', 'l']),
                fn () => $client->has('k'), fn () => $client->set('k', 'v'), fn () => $client->setMany(['k' => 'v']),
                fn () => $client->increment('k'), fn () => $client->touch('k'), fn () => $client->delete('k'),
                fn () => $client->deleteMany(['k']), fn () => $client->flush(),
            ];
            for ($round = 0; $round < 20; $round++) {
                foreach ($calls as $call) {
                    // While the call waits.
                    $child = pcntl_fork();
                    if ($child === 0) {
                        usleep(3000);
                        posix_kill($parent, SIGUSR1);
                        posix_kill(posix_getpid(), SIGKILL);
                    }
                    pcntl_signal(SIGUSR1, $handler);
                    try {
                        $call();
                    } catch (LogicException | CacheException $failure) {
                        $thrown += (int) ($failure instanceof LogicException);
                    }
                    pcntl_signal(SIGUSR1, SIG_IGN);
                    pcntl_waitpid($child, $status);
                }
            }
            return $thrown > 0;
        });
        $server->signal(SIGCONT);
        $patient = new Client($server->address('unix'));
        Wait::until('an answer', fn () => $patient->get('none', 'none') === 'none');
    }
}
