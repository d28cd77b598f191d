<?php
// php-redis, which Laravel's cache uses, against a server: php redis.php PORT. Ends with 0 if all is as expected.
function same($expected, $found, string $what): void
{
    if ($expected !== $found) {
        fwrite(STDERR, "$what: " . var_export($found, true) . ", not " . var_export($expected, true) . "\n");
        exit(1);
    }
}

$client = new Redis();
same(true, $client->connect("127.0.0.1", (int) $argv[1]), "connect");
same(true, $client->select(0), "select");
same(true, $client->flushDB(), "flush");
same(false, $client->get("none"), "get of none");
same(true, $client->setex("k", 100, serialize(["a" => 1])), "setex");
same(["a" => 1], unserialize($client->get("k")), "get");
same(false, $client->set("k", "w", ["nx", "ex" => 10]), "set of what is there");
same(true, $client->set("lock", "owner", ["nx", "px" => 10000]), "lock");
same(["v1", false], [$client->mSet(["a" => "v1"]) ? $client->get("a") : null, $client->mGet(["none"])[0]], "mset, mget");
same(5, $client->incrBy("n", 5), "incr");
same(true, $client->ttl("k") > 98, "ttl");
same([true, "v", 1], $client->multi()->set("m", "v")->get("m")->del("m")->exec(), "a transaction");
$answers = $client->multi(Redis::PIPELINE)->set("p", "v")->get("p")->exec();
same([true, "v"], $answers, "a pipeline");
$client->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
$found = [];
$cursor = null;
while ($keys = $client->scan($cursor, "*", 100)) {
    array_push($found, ...$keys);
}
sort($found);
same(["a", "k", "lock", "n", "p"], $found, "scan");
same(2, $client->del("a", "k"), "del");
