<?php

declare(strict_types=1);

namespace Nuthatch\Exception;

/** The library cannot be loaded, or has failed. */
class LibraryException extends \RuntimeException implements CacheException
{
}
