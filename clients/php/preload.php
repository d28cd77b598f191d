<?php

/**
 * For opcache.preload: by its default setting ffi.enable=preload, a web server's PHP lets only preloaded code call libraries.
 * That is the code here; all other classes are loaded as usual.
 *
 * ffi.preload=src/nuthatch_client.h besides has the library loaded once, and not for each request.
 */

declare(strict_types=1);

require_once __DIR__ . '/src/Library.php';
require_once __DIR__ . '/src/Native.php';
