<?php

declare(strict_types=1);

namespace Nuthatch\Exception;

/** The value cannot be serialized, or what the server has cannot be made a value again. */
class SerializationException extends \RuntimeException implements CacheException
{
}
