<?php

/**
 * What a get takes from PHP, by each way to Nuthatch and by other clients. Two servers of one build, because one listens at TCP
 * or at a unix socket:
 *
 *     nuthatch -t 1 -l 127.0.0.1 -p 21211 --redis-port 21212 --shared /tmp/bench.shared &
 *     nuthatch -t 1 -s /tmp/bench.socket &
 *     php -d opcache.enable_cli=1 clients/php/bench.php 21211 21212 /tmp/bench.shared /tmp/bench.socket
 *
 * Prints a table of microseconds: the median of rounds (the least to the greatest).
 */

declare(strict_types=1);

require __DIR__ . '/autoload.php';

const ROUNDS = 5;
const SECONDS = 0.5;
const KEYS = 100;

[, $tcp, $redisPort, $shared, $socket] = $argv;
$value = str_repeat('x', 32);
$keys = array_map(fn (int $number) => "key-$number", range(1, KEYS));

$clients = [
    '`Nuthatch\Client`, `shm://`' => new Nuthatch\Client("shm://$shared?or=tcp://127.0.0.1:$tcp"),
    '`Nuthatch\Client`, `unix://`' => new Nuthatch\Client("unix://$socket"),
    '`Nuthatch\Client`, `tcp://`' => new Nuthatch\Client("tcp://127.0.0.1:$tcp"),
];
$ways = [];
foreach ($clients as $name => $client) {
    $ways[$name] = [
        fn (string $key) => $client->get($key),
        fn () => $client->getMany($keys),
        fn (string $key) => $client->set($key, $value),
    ];
}
$psr = new Nuthatch\SimpleCache($clients['`Nuthatch\Client`, `shm://`']);
$ways['`Nuthatch\SimpleCache`, `shm://`'] = [
    fn (string $key) => $psr->get($key),
    fn () => $psr->getMultiple($keys),
    fn (string $key) => $psr->set($key, $value),
];
foreach (['a unix socket' => [$socket, 0], 'TCP' => ['127.0.0.1', (int) $tcp]] as $name => $server) {
    $memcached = new Memcached();
    $memcached->setOptions([Memcached::OPT_TCP_NODELAY => true, Memcached::OPT_COMPRESSION => false]);
    $memcached->addServer(...$server);
    $ways["php-memcached, $name"] = [
        fn (string $key) => $memcached->get($key),
        fn () => $memcached->getMulti($keys),
        fn (string $key) => $memcached->set($key, $value),
    ];
}
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $redisPort);
$ways['php-redis, TCP'] = [
    fn (string $key) => $redis->get($key),
    fn () => array_combine($keys, $redis->mGet($keys)),
    fn (string $key) => $redis->set($key, $value),
];

/** Microseconds of a call. */
function time_of(callable $call, array $keys): float
{
    $calls = 0;
    $begin = hrtime(true);
    $end = $begin + (int) (SECONDS * 1e9);
    do {
        foreach ($keys as $key) {
            $call($key);
        }
        $calls += count($keys);
    } while (($now = hrtime(true)) < $end);
    return ($now - $begin) / $calls / 1000;
}

$times = [];
for ($round = 0; $round < ROUNDS; $round++) {
    foreach ($ways as $name => [$get, $many, $set]) {
        $times[$name]['set'][] = time_of($set, $keys);
        // Each gets what it has set, and nothing else is measured.
        if ($get($keys[0]) !== $value || $many() != array_fill_keys($keys, $value)) {
            throw new RuntimeException("$name: wrong values");
        }
        $times[$name]['get'][] = time_of($get, $keys);
        $times[$name]['many'][] = time_of($many, array_slice($keys, 0, 10)) / KEYS;
    }
}

function told(array $times): string
{
    sort($times);
    return sprintf('%.3g (%.3g to %.3g)', $times[intdiv(count($times), 2)], $times[0], end($times));
}

echo '| us | a get | a get, 100 at a time | a set |', "\n|---|---|---|---|\n";
foreach ($times as $name => $of) {
    echo "| $name | ", told($of['get']), ' | ', told($of['many']), ' | ', told($of['set']), " |\n";
}
