<?php
// php-memcached against a server: php memcached.php PORT binary|text [USER PASSWORD]. Ends with 0 if all is as expected.
[, $port, $protocol] = $argv;

function same($expected, $found, string $what): void
{
    if ($expected !== $found) {
        fwrite(STDERR, "$what: " . var_export($found, true) . ", not " . var_export($expected, true) . "\n");
        exit(1);
    }
}

$client = new Memcached();
$client->setOption(Memcached::OPT_BINARY_PROTOCOL, $protocol === "binary");
if (isset($argv[4])) {
    $client->setSaslAuthData($argv[3], $argv[4]);
}
$client->addServer("127.0.0.1", (int) $port);
same(true, $client->flush(), "flush");
same(false, $client->get("none"), "get of none");
same(Memcached::RES_NOTFOUND, $client->getResultCode(), "its code");
foreach ([7, 2.5, true, "text", "", [1, "a" => [null]], str_repeat("x", 500000)] as $value) {
    same(true, $client->set("typed", $value, 100), "set");
    same($value, $client->get("typed"), "get");
}
same(false, $client->add("typed", 1), "add of what is there");
same($protocol === "binary" ? Memcached::RES_DATA_EXISTS : Memcached::RES_NOTSTORED, $client->getResultCode(), "its code");
same(true, $client->replace("typed", 1), "replace");
same(6, $client->increment("typed", 5), "increment");
same(0, $client->decrement("typed", 10), "decrement");
if ($protocol === "binary") {
    same(40, $client->increment("counter", 1, 40), "increment of none");
}
$items = [];
for ($number = 0; $number < 500; $number++) {
    $items["key:$number"] = $number;
}
same(true, $client->setMulti($items, 100), "setMulti");
$found = $client->getMulti(array_keys($items + ["none" => 0]));
ksort($items);
ksort($found);
same($items, $found, "getMulti");
$client->setOption(Memcached::OPT_COMPRESSION, false);
$client->set("text", "b");
same(true, $client->append("text", "c"), "append");
same(true, $client->prepend("text", "a"), "prepend");
$extended = $client->get("text", null, Memcached::GET_EXTENDED);
same("abc", $extended["value"], "get with cas");
same(true, $client->cas($extended["cas"], "text", "new"), "cas");
same(false, $client->cas($extended["cas"], "text", "late"), "cas that is late");
same(Memcached::RES_DATA_EXISTS, $client->getResultCode(), "its code");
same(true, $client->touch("text", 200), "touch");
same(true, $client->delete("text"), "delete");
same(false, $client->delete("text"), "delete of none");
same(1, count($client->getVersion()), "version");
same(true, array_values($client->getStats())[0]["curr_items"] > 0, "stats");
$client->quit();
