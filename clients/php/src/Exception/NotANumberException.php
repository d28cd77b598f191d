<?php

declare(strict_types=1);

namespace Nuthatch\Exception;

/** The value cannot be counted on: it is no number, or a larger one than PHP has. */
class NotANumberException extends \RuntimeException implements CacheException
{
}
