import java.time.Duration;
import java.util.List;
import org.springframework.cache.Cache;
import org.springframework.data.redis.cache.RedisCacheConfiguration;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.cache.RedisCacheWriter;
import org.springframework.data.redis.cache.BatchStrategies;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.RedisScript;

/** Spring's RedisCacheManager on its two clients: java Spring.java PORT. Ends with 0 if all is as expected. */
public class Spring {
    static void same(Object expected, Object found, String what) {
        if (!expected.equals(found)) throw new AssertionError(what + ": " + found + ", not " + expected);
    }

    /** What Spring's Boot makes, without properties. */
    static void defaults(RedisConnectionFactory connections) {
        RedisCacheManager manager = RedisCacheManager.create(connections);
        Cache cache = manager.getCache("nuts");
        Cache other = manager.getCache("others");
        cache.clear();
        cache.put("k", List.of(1, 2));
        other.put("kept", "v");
        same(List.of(1, 2), cache.get("k").get(), "get");
        same("w", cache.get("made", () -> "w"), "made");
        same("w", cache.get("made", () -> "x"), "kept");
        same(true, cache.putIfAbsent("k", 7) != null && cache.putIfAbsent("new", 7) == null, "putIfAbsent");
        cache.evict("new");
        same(true, cache.get("new") == null, "what was evicted");
        cache.clear();
        same(true, cache.get("k") == null, "clear");
        same("v", other.get("kept").get(), "clear of one cache");
    }

    /** One that walks instead of KEYS, that locks, and whose items expire, later with each read. */
    static void chosen(RedisConnectionFactory connections) {
        RedisCacheWriter writer = RedisCacheWriter.lockingRedisCacheWriter(connections, BatchStrategies.scan(100));
        RedisCacheConfiguration configuration = RedisCacheConfiguration.defaultCacheConfig().entryTtl(Duration.ofMinutes(5));
        configuration = configuration.enableTimeToIdle();
        Cache cache = RedisCacheManager.builder(writer).cacheDefaults(configuration).build().getCache("scanned");
        for (int number = 0; number < 500; number++) cache.put(number, "v");
        same("v", cache.get(499).get(), "get and expire");
        cache.clear();
        same(true, cache.get(0) == null && cache.get(499) == null, "clear by SCAN");
    }

    static void template(RedisConnectionFactory connections) {
        StringRedisTemplate template = new StringRedisTemplate(connections);
        var values = template.opsForValue();
        same(true, values.setIfAbsent("lock", "mine", Duration.ofMinutes(1)), "lock");
        same(false, values.setIfAbsent("lock", "another's", Duration.ofMinutes(1)), "lock of another");
        var release = RedisScript.of("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end", Long.class);
        same(0L, template.execute(release, List.of("lock"), "another's"), "release by another");
        same(1L, template.execute(release, List.of("lock"), "mine"), "release");
        same(3L, values.increment("count", 3), "increment");
        same(true, template.getExpire("count") == -1 && template.expire("count", Duration.ofMinutes(1)), "expire");
        same(true, template.delete("count"), "delete");
    }

    static void all(RedisConnectionFactory connections) {
        defaults(connections);
        chosen(connections);
        template(connections);
    }

    public static void main(String[] words) {
        var address = new RedisStandaloneConfiguration("127.0.0.1", Integer.parseInt(words[0]));
        var lettuce = new LettuceConnectionFactory(address);
        lettuce.start();
        all(lettuce);
        lettuce.destroy();
        var jedis = new JedisConnectionFactory(address);
        jedis.start();
        all(jedis);
        jedis.destroy();
    }
}
