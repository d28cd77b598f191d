<?php
// PHP's session handler, as a page sees it: php session.php PORT binary|text. Ends with 0 if a second request finds what
// the first one left, and a third one that it was destroyed.
[, $port, $protocol] = $argv;
ini_set("session.save_handler", "memcached");
ini_set("session.save_path", "127.0.0.1:$port");
ini_set("session.use_cookies", "0");
ini_set("session.cache_limiter", "");
ini_set("memcached.sess_binary_protocol", $protocol === "binary" ? "1" : "0");

function request(string $id, callable $page)
{
    session_id($id);
    session_start() || exit(1);
    $said = $page();
    session_write_close();
    return $said;
}

$id = "visitor" . getmypid();
request($id, function () { $_SESSION["basket"] = ["nuts" => 3]; });
$basket = request($id, function () { $_SESSION["visits"] = 2; return $_SESSION["basket"]; });
request($id, function () { session_destroy(); });
$left = request($id, fn () => count($_SESSION));
if ($basket !== ["nuts" => 3] || $left !== 0) {
    fwrite(STDERR, "found " . var_export($basket, true) . ", left $left\n");
    exit(1);
}
