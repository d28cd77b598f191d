<?php

/**
 * For opcache.preload: loads the library and what calls it, once for all requests. By the default setting ffi.enable=preload,
 * a web server's PHP lets no other code call libraries.
 *
 * NUTHATCH_CLIENT_LIBRARY in the environment is the library's file, if the system does not find it by its name.
 */

declare(strict_types=1);

require_once __DIR__ . '/src/Library.php';
require_once __DIR__ . '/src/Native.php';

Nuthatch\Library::preload();
