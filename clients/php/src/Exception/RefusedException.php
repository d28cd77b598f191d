<?php

declare(strict_types=1);

namespace Nuthatch\Exception;

/** The server refused the request: a value that is larger than it takes, say. */
class RefusedException extends \RuntimeException implements CacheException
{
}
