<?php

/**
 * A page cache for PHP's built-in server, shared by all its processes:
 *
 *     nuthatch -s /tmp/nuthatch.sock --shared /tmp/nuthatch.shared &
 *     export CACHE='shm:///tmp/nuthatch.shared?or=unix:///tmp/nuthatch.sock'
 *     PHP_CLI_SERVER_WORKERS=4 php -d opcache.preload=clients/php/preload.php -S 127.0.0.1:8080 examples/php/page_cache.php
 *
 * The first who asks for a page waits for it to be made; those who ask meanwhile wait for that one; all others read it from the
 * server's memory. As root, opcache.preload_user=root too.
 */

declare(strict_types=1);

require __DIR__ . '/../../clients/php/autoload.php';

/** A page that takes a while, as one with a database behind it does. */
function page(string $path): string
{
    usleep(300_000);
    return '<h1>' . htmlspecialchars($path) . '</h1><p>made at ' . date('H:i:s') . ' by process ' . getmypid() . "</p>\n";
}

$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH) ?: '/';
$cache = new Nuthatch\Client(getenv('CACHE') ?: 'tcp://127.0.0.1:11211', prefix: 'page ');
$is_made = false;
// Keys are short, paths need not be. In the last two seconds of a page one process makes the next, and nobody waits.
$page = $cache->getOrCompute(hash('sha256', $path), function () use ($path, &$is_made): string {
    $is_made = true;
    return page($path);
}, 10, early: 2);
header('X-Cache: ' . ($is_made ? 'made' : 'found'));
echo $page;
