<?php
// Symfony's cache adapters, locks, limiters and sessions by a DSN: php symfony.php PORT KIND. Ends with 0 if all is as expected.
require "/usr/share/php/Symfony/Component/Cache/autoload.php";
require "/usr/share/php/Symfony/Component/Lock/autoload.php";
require "/usr/share/php/Symfony/Component/RateLimiter/autoload.php";
require "/usr/share/php/Symfony/Component/HttpFoundation/autoload.php";

use Symfony\Component\Cache\Adapter\RedisAdapter;
use Symfony\Component\Cache\Adapter\TagAwareAdapter;
use Symfony\Component\HttpFoundation\Session\Storage\Handler\RedisSessionHandler;
use Symfony\Component\Lock\Exception\LockAcquiringException;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;
use Symfony\Component\RateLimiter\RateLimiterFactory;
use Symfony\Component\RateLimiter\Storage\CacheStorage;

function same($expected, $found, string $what): void
{
    if ($expected !== $found) {
        fwrite(STDERR, "$what: " . var_export($found, true) . ", not " . var_export($expected, true) . "\n");
        exit(1);
    }
}

$client = RedisAdapter::createConnection("redis://127.0.0.1:$argv[1]/2");
$pool = new RedisAdapter($client, "app", 100);
$other = new RedisAdapter($client, "other");
same([true, true], [$pool->clear(), $other->clear()], "clear");
same([7, 7], [$pool->get("made", fn() => 7), $pool->get("made", fn() => 8)], "get");
$item = $pool->getItem("k");
same(false, $item->isHit(), "a miss");
same(true, $pool->save($item->set(["a" => 1])->expiresAfter(60)), "save");
same(["a" => 1], $pool->getItem("k")->get(), "what was saved");
foreach (["a" => 1, "b" => 2] as $key => $value) {
    $pool->saveDeferred($pool->getItem($key)->set($value));
}
same(true, $pool->commit(), "commit");
$items = iterator_to_array($pool->getItems(["a", "none", "b"]));
same([1, null, 2], array_map(fn($key) => $items[$key]->get(), ["a", "none", "b"]), "getItems");
same([true, false], [$pool->deleteItems(["a", "b"]), $pool->hasItem("a")], "deleteItems");
$other->get("kept", fn() => 1);
same([true, false, true], [$pool->clear(), $pool->hasItem("k"), $other->hasItem("kept")], "clear of one namespace");

// Tags in items of their own.
$tagged = new TagAwareAdapter($pool);
$tagged->save($tagged->getItem("ann")->set(1)->tag("people"));
same([true, true, false], [$tagged->hasItem("ann"), $tagged->invalidateTags(["people"]), $tagged->hasItem("ann")], "tags");

$sessions = new RedisSessionHandler($client);
$sessions->open("", "PHPSESSID");
same([true, "user|ann"], [$sessions->write("id", "user|ann"), $sessions->read("id")], "session");
same([true, ""], [$sessions->destroy("id"), $sessions->read("id")], "session's end");

$limiter = new RateLimiterFactory(["id" => "login", "policy" => "fixed_window", "limit" => 2, "interval" => "1 minute"], new CacheStorage($pool));
$accepted = array_map(fn() => $limiter->create("ann")->consume()->isAccepted(), range(1, 3));
same([true, true, false], $accepted, "limiter");

// Its locks are sorted sets in scripts.
$lock = (new LockFactory(new RedisStore($client)))->createLock("held");
if ($argv[2] === "plain") {
    try {
        $lock->acquire();
        $error = null;
    } catch (LockAcquiringException $error) {
    }
    same(true, $error !== null, "a lock");
} else {
    same([true, false], [$lock->acquire(), (new LockFactory(new RedisStore($client)))->createLock("held")->acquire()], "a lock");
    $lock->release();
}
