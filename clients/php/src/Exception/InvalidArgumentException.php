<?php

declare(strict_types=1);

namespace Nuthatch\Exception;

/** The call is wrong by itself: a key, a lifetime, a value that is too long, an address. Nothing was sent. */
class InvalidArgumentException extends \InvalidArgumentException implements CacheException, \Psr\SimpleCache\InvalidArgumentException
{
}
