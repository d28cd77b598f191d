<?php

declare(strict_types=1);

namespace Nuthatch\Exception;

/** What all exceptions of this package are. */
interface CacheException extends \Psr\SimpleCache\CacheException, \Throwable
{
}
