<?php
// What Laravel's cache asks of php-redis, against a server: php laravel.php PORT. Ends with 0 if all is as expected.
// (Illuminate\Cache\RedisStore::add, its lock's release and refresh, and RateLimiter, in the calls that they make.)
function same($expected, $found, string $what): void
{
    if ($expected !== $found) {
        fwrite(STDERR, "$what: " . var_export($found, true) . ", not " . var_export($expected, true) . "\n");
        exit(1);
    }
}

$client = new Redis();
same(true, $client->connect("127.0.0.1", (int) $argv[1]), "connect");
// Its cache has database 1, unless its configuration says otherwise.
same(true, $client->select(1), "select");
same(true, $client->flushDB(), "flush");

const ADD = "return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])";
const RELEASE = <<<'LUA'
if redis.call("get",KEYS[1]) == ARGV[1] then
    return redis.call("del",KEYS[1])
else
    return 0
end
LUA;
$add = fn($key, $value, $seconds) => (bool) $client->eval(ADD, [$key, $value, $seconds], 1);
$release = fn($name, $owner) => (bool) $client->eval(RELEASE, [$name, $owner], 1);

same([true, false, "v"], [$add("k", "v", 100), $add("k", "w", 100), $client->get("k")], "add");
same(true, $client->ttl("k") > 98, "what was added lives for a while");
$long = str_repeat("long", 50000);
same([true, $long], [$add("long", $long, 100), $client->get("long")], "add of a long value");

same(true, $client->set("lock", "me", ["nx", "ex" => 60]), "a lock");
same([false, "me"], [$release("lock", "other"), $client->get("lock")], "release by another");
same([true, false], [$release("lock", "me"), $client->get("lock")], "release");
same(false, $release("lock", "me"), "release of what is free");
$refresh = fn($name, $owner, $seconds) => (bool) $client->eval(str_replace('"del",KEYS[1]', '"expire",KEYS[1],ARGV[2]', RELEASE), [$name, $owner, $seconds], 1);
$client->set("lock", "me", ["nx", "ex" => 60]);
same([false, true, true], [$refresh("lock", "other", 600), $refresh("lock", "me", 600), $client->ttl("lock") > 500], "refresh");
same(true, $release("lock", "me"), "release of what was refreshed");
// In one round trip less, from the second time on.
$name = $client->script("load", RELEASE);
same([sha1(RELEASE), [1, 0]], [$name, $client->script("exists", $name, sha1("x"))], "script load, exists");
$client->set("lock", "me");
same(1, $client->evalSha($name, ["lock", "me"], 1), "release by name");

$passed = 0;
for ($attempt = 0; $attempt < 20; $attempt++) {
    if ((int) $client->get("login") >= 5) {
        if ($client->get("login:timer") !== false) {
            continue;
        }
        $client->del("login");
    }
    $passed++;
    $add("login:timer", time() + 60, 60);
    $added = $add("login", 0, 60);
    if ($client->incrBy("login", 1) == 1 && !$added) {
        $client->setex("login", 60, 1);
    }
}
same(5, $passed, "attempts that pass 5 a minute");

same(false, $client->eval("return 1", [], 0), "a script that is not known");
same(true, str_contains($client->getLastError(), "Laravel"), "its error");
