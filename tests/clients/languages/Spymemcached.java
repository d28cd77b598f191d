import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.BinaryConnectionFactory;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactory;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.MemcachedClient;

/** spymemcached against a server: java Spymemcached.java PORT binary|text. Ends with 0 if all is as expected. */
public class Spymemcached {
    static void same(Object expected, Object found, String what) {
        if (!Objects.equals(expected, found)) {
            System.err.println(what + ": " + found + ", not " + expected);
            System.exit(1);
        }
    }

    public static void main(String[] words) throws Exception {
        ConnectionFactory factory =
                words[1].equals("binary") ? new BinaryConnectionFactory() : new DefaultConnectionFactory();
        List<InetSocketAddress> servers = AddrUtil.getAddresses("127.0.0.1:" + words[0]);
        MemcachedClient client = new MemcachedClient(factory, servers);
        same(true, client.flush().get(), "flush");
        same(null, client.get("none"), "get of none");
        for (Object value : new Object[] {7, 2.5, "text", true, "x".repeat(500_000)}) {
            same(true, client.set("typed", 100, value).get(), "set");
            same(value, client.get("typed"), "get");
        }
        same(false, client.add("typed", 100, "other").get(), "add of what is there");
        same(true, client.replace("typed", 100, "1").get(), "replace");
        same(6L, client.incr("typed", 5), "incr");
        same(0L, client.decr("typed", 10), "decr");
        same(40L, client.incr("counter", 1, 40), "incr of none");
        List<String> keys = new ArrayList<>();
        for (int number = 0; number < 500; number++) {
            keys.add("key:" + number);
            client.set("key:" + number, 100, number);
        }
        keys.add("none");
        Map<String, Object> found = client.getBulk(keys);
        same(500, found.size(), "getBulk");
        same(123, found.get("key:123"), "getBulk");
        CASValue<Object> seen = client.gets("key:1");
        same(CASResponse.OK, client.cas("key:1", seen.getCas(), 2), "cas");
        same(CASResponse.EXISTS, client.cas("key:1", seen.getCas(), 3), "cas that is late");
        client.set("text", 100, "b").get();
        same(true, client.append("text", "c").get(), "append");
        same(true, client.prepend("text", "a").get(), "prepend");
        same("abc", client.get("text"), "get of it");
        same(true, client.delete("text").get(), "delete");
        same(false, client.delete("text").get(), "delete of none");
        same(1, client.getVersions().size(), "versions");
        same(1, client.getStats().size(), "stats");
        client.shutdown();
    }
}
