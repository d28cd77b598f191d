<?php
// Laravel's own cache, locks, limiter and sessions, as config/database.php and config/cache.php of a new application have
// them: php laravel.php PORT KIND. Ends with 0 if all is as expected.
require "/usr/share/php/Illuminate/Cache/autoload.php";
require "/usr/share/php/Illuminate/Redis/autoload.php";
require "/usr/share/php/Illuminate/Session/autoload.php";
require "/usr/share/php/Illuminate/Config/autoload.php";
require "/usr/share/php/Illuminate/Container/autoload.php";
require "/usr/share/php/Illuminate/Events/autoload.php";

use Illuminate\Cache\CacheManager;
use Illuminate\Cache\RateLimiter;
use Illuminate\Config\Repository as Config;
use Illuminate\Container\Container;
use Illuminate\Redis\RedisManager;
use Illuminate\Session\SessionManager;

function same($expected, $found, string $what): void
{
    if ($expected !== $found) {
        fwrite(STDERR, "$what: " . var_export($found, true) . ", not " . var_export($expected, true) . "\n");
        exit(1);
    }
}

// Only host and port are not those of a new application. Database 1 is its cache's, 0 its sessions'.
$connection = ["host" => "127.0.0.1", "password" => null, "port" => $argv[1]];
$redis = [
    "options" => ["cluster" => "redis", "prefix" => "laravel_database_"],
    "default" => $connection + ["database" => "0"],
    "cache" => $connection + ["database" => "1"],
];
$app = new Container();
$app->instance("config", new Config([
    "cache" => ["default" => "redis", "prefix" => "laravel_cache", "stores" => [
        "redis" => ["driver" => "redis", "connection" => "cache", "lock_connection" => "default"],
    ]],
    "session" => ["driver" => "redis", "connection" => "default", "lifetime" => 120, "cookie" => "laravel_session", "store" => null],
]));
$manager = new RedisManager($app, "phpredis", $redis);
$app->instance("redis", $manager);
$caches = new CacheManager($app);
$app->instance("cache", $caches);
$cache = $caches->store();
$cache->clear();

same(true, $cache->put("k", ["a" => [1, 2]], 100), "put");
same([["a" => [1, 2]], "other"], [$cache->get("k"), $cache->get("none", "other")], "get");
same([true, false], [$cache->add("new", 1, 100), $cache->add("new", 2, 100)], "add");
same([6, 4], [$cache->increment("new", 5), $cache->decrement("new", 2)], "increment, decrement");
same(true, $cache->putMany(["one" => 1, "two" => "2"], 100), "putMany");
same(["one" => "1", "two" => "2", "three" => null], $cache->many(["one", "two", "three"]), "many");
same([true, "for ever"], [$cache->forever("ever", "for ever"), $cache->get("ever")], "forever");
same([7, 7], [$cache->remember("made", 100, fn() => 7), (int) $cache->remember("made", 100, fn() => 8)], "remember");
same(["for ever", null], [$cache->pull("ever"), $cache->get("ever")], "pull");
same([true, false], [$cache->forget("k"), $cache->has("k")], "forget");

$lock = $cache->lock("held", 60);
same([true, false], [$lock->get(), $cache->lock("held", 60)->get()], "lock");
same(false, $cache->restoreLock("held", "another")->release(), "release by another");
same([true, true], [$cache->restoreLock("held", $lock->owner())->release(), $cache->lock("held", 60)->get()], "release");
$cache->lock("held")->forceRelease();
same("done", $cache->lock("held", 60)->block(1, fn() => "done"), "block");

$limiter = new RateLimiter($cache);
$tries = array_map(fn() => $limiter->attempt("user", 2, fn() => true, 60), range(1, 3));
same([true, true, false], $tries, "attempts");
same(true, $limiter->availableIn("user") > 50, "available in");

$session = (new SessionManager($app))->driver();
$session->start();
$session->put("user", "ann");
$session->save();
$again = (new SessionManager($app))->driver();
$again->setId($session->getId());
$again->start();
same("ann", $again->get("user"), "session");

// A flush of the cache leaves the sessions.
same([true, null], [$cache->flush(), $cache->get("one")], "flush");
$again->start();
same("ann", $again->get("user"), "session after the cache's flush");
same(true, $manager->connection("default")->dbsize() > 0, "database 0 is another");

// Tags are sets of keys, and this is no server for them: an application has a word of it, not a wrong value.
if ($argv[2] === "plain") {
    try {
        $cache->tags(["people"])->put("ann", 1, 100);
        $cache->tags(["people"])->flush();
        $error = null;
    } catch (RedisException $error) {
    }
    same(true, $error !== null, "tags");
} else {
    same(true, $cache->tags(["people"])->put("ann", 1, 100), "put with a tag");
    same(true, $cache->tags(["people"])->flush(), "flush of a tag");
    same(null, $cache->tags(["people"])->get("ann"), "what had the tag");
}
