<?php

declare(strict_types=1);

namespace Nuthatch\Exception;

/** No reply came. A change may have been made. */
class NoReplyException extends \RuntimeException implements CacheException
{
}
