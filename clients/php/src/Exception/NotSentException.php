<?php

declare(strict_types=1);

namespace Nuthatch\Exception;

/** The server cannot be reached. Nothing was sent, so surely nothing was changed. */
class NotSentException extends \RuntimeException implements CacheException
{
}
