package nuthatch

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// The port of a server that names none.
	standardPort = "11211"
	// The most servers of an address.
	serversMax = 1024
)

// server is one server of an address.
type server struct {
	// network is tcp or unix, place what net.Dial takes for it.
	network, place string
	// host is the name that the certificate has to have.
	host   string
	weight uint32
}

// name is the server's name on the ring: libmemcached leaves the standard port out.
func (s server) name() string {
	_, port, err := net.SplitHostPort(s.place)
	switch {
	case s.network == "unix" || err != nil:
		return s.place
	case port == standardPort:
		return s.host
	}
	return s.host + ":" + port
}

// address is what an address says, beside its options.
type address struct {
	servers []server
	hasTLS  bool
	// memory is the path of the socket that gives out the server's memory, if that is to be read; rest is what the address says
	// behind it.
	memory, rest string
}

func invalid(form string, words ...any) error {
	return failure(ErrAddress, fmt.Sprintf(form, words...))
}

// parseAddress reads an address. Its options change these.
func parseAddress(text string, options *Options) (address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return address{}, invalid("%q begins with none of tcp://, tls://, unix://, shm://", text)
	}
	place, query, _ := strings.Cut(rest, "?")
	or, err := parseOptions(query, options)
	if err != nil {
		return address{}, err
	}
	if or != "" && scheme != "shm" {
		return address{}, invalid("or= is for shm://, not for %s://", scheme)
	}
	parsed := address{hasTLS: scheme == "tls"}
	switch scheme {
	case "tcp", "tls":
		parsed.servers, err = parseServers(place)
	case "unix":
		parsed.servers, err = parseSocket(place)
	case "shm":
		parsed.servers, err = parseShared(place, or)
		parsed.memory, parsed.rest = place, query
	default:
		err = invalid("%s:// is none of tcp://, tls://, unix://, shm://", scheme)
	}
	if err == nil && options.TLS != nil && !parsed.hasTLS {
		err = invalid("ca, cert, key and Options.TLS are for tls://, not for %s://", scheme)
	}
	if err != nil {
		return address{}, err
	}
	for _, server := range parsed.servers {
		// libmemcached makes more places for weights, however it hashes.
		if server.weight != 1 && options.Distribution == KetamaUnweighted {
			return address{}, invalid("ketama_unweighted has no weights")
		}
	}
	return parsed, nil
}

func parseServers(places string) ([]server, error) {
	words := strings.Split(places, ",")
	if len(words) > serversMax {
		return nil, invalid("%d servers, where %d are the most", len(words), serversMax)
	}
	servers := make([]server, 0, len(words))
	for _, word := range words {
		server, err := parseServer(word)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// parseServer reads HOST, HOST:PORT or [IPV6]:PORT, with a weight behind *.
func parseServer(text string) (server, error) {
	place, weightWord, hasWeight := strings.Cut(text, "*")
	weight := uint64(1)
	if hasWeight {
		var err error
		if weight, err = strconv.ParseUint(weightWord, 10, 32); err != nil || weight == 0 {
			return server{}, invalid("%q: a weight is a number above 0", text)
		}
	}
	isIPv6 := strings.HasPrefix(place, "[")
	if (isIPv6 && strings.HasSuffix(place, "]")) || (!isIPv6 && !strings.Contains(place, ":")) {
		place += ":" + standardPort
	}
	host, port, err := net.SplitHostPort(place)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || !isHost(host) {
		return server{}, invalid("%q is not HOST:PORT, HOST or [IPV6]:PORT", text)
	}
	return server{network: "tcp", place: place, host: host, weight: uint32(weight)}, nil
}

// isHost says whether this may be a name or an address. What else an address has, mistyped, would be looked up with it.
func isHost(text string) bool {
	return text != "" && !isBinary(text) && !strings.ContainsAny(text, "/?#@&=")
}

func parseSocket(path string) ([]server, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, invalid("unix://%s: the path begins with /", path)
	}
	return []server{{network: "unix", place: path, weight: 1}}, nil
}

// parseShared reads the path of a socket that gives out a server's memory, and returns where else the same server is reached.
func parseShared(path, or string) ([]server, error) {
	if !strings.HasPrefix(path, "/") || strings.Contains(path, ",") {
		return nil, invalid("shm://%s: it is one path, which begins with /", path)
	}
	scheme, place, _ := strings.Cut(or, "://")
	switch {
	case scheme == "unix":
		return parseSocket(place)
	case scheme == "tcp" && !strings.ContainsAny(place, ",*"):
		return parseServers(place)
	}
	return nil, invalid("shm:// needs or=unix:///PATH or or=tcp://HOST:PORT")
}

// files are those of TLS, all in PEM.
type files struct {
	ca, cert, key string
}

func parseOptions(query string, options *Options) (or string, err error) {
	var named files
	for _, word := range strings.Split(query, "&") {
		name, text, _ := strings.Cut(word, "=")
		switch name {
		case "":
		case "or":
			or = text
		case "ca":
			named.ca = text
		case "cert":
			named.cert = text
		case "key":
			named.key = text
		default:
			err = setOption(options, name, text)
		}
		if err != nil {
			return "", err
		}
	}
	if named != (files{}) {
		options.TLS, err = named.config(options.TLS)
	}
	return or, err
}

func setOption(options *Options, name, text string) (err error) {
	switch name {
	case "timeout_ms":
		options.Timeout, err = milliseconds(name, text)
	case "connect_timeout_ms":
		options.ConnectTimeout, err = milliseconds(name, text)
	case "late_max_ms":
		options.LateMax, err = milliseconds(name, text)
	case "retry_least_ms":
		options.RetryLeast, err = milliseconds(name, text)
	case "retry_most_ms":
		options.RetryMost, err = milliseconds(name, text)
	case "retry_wait_ms":
		options.RetryWait, err = milliseconds(name, text)
	case "near_ms":
		options.Near, err = milliseconds(name, text)
	case "requests_max":
		options.RequestsMax, err = number(name, text)
	case "bytes_max":
		options.BytesMax, err = number(name, text)
	case "value_max":
		options.ValueMax, err = number(name, text)
	case "near_bytes":
		options.NearBytes, err = number(name, text)
	case "eject_after":
		options.EjectAfter, err = number(name, text)
	case "when_full":
		if text != "wait" && text != "fail" {
			return invalid("when_full=%s: it is wait or fail", text)
		}
		options.FailWhenFull = text == "fail"
	case "distribution":
		return setDistribution(options, text)
	case "login_file":
		options.Login, err = readLogin(text)
	default:
		return invalid("there is no option %q", name)
	}
	return err
}

func setDistribution(options *Options, text string) error {
	switch text {
	case "ketama":
		options.Distribution = Ketama
	case "ketama_unweighted":
		options.Distribution = KetamaUnweighted
	default:
		return invalid("distribution=%s: in Go it is ketama or ketama_unweighted", text)
	}
	return nil
}

func number(name, text string) (int, error) {
	parsed, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, invalid("%s=%s: it is a number of at most %d", name, text, 1<<31-1)
	}
	return int(parsed), nil
}

func milliseconds(name, text string) (time.Duration, error) {
	parsed, err := number(name, text)
	return time.Duration(parsed) * time.Millisecond, err
}

// readLogin reads the first line of a file: NAME:PASSWORD.
func readLogin(path string) (*Login, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, invalid("login_file: %v", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	name, password, ok := strings.Cut(strings.TrimSuffix(first, "\r"), ":")
	if !ok {
		return nil, invalid("login_file=%s: its first line is not NAME:PASSWORD", path)
	}
	return &Login{Name: name, Password: password}, nil
}

// config adds the files to a configuration.
func (f files) config(to *tls.Config) (*tls.Config, error) {
	if to == nil {
		to = &tls.Config{}
	}
	to = to.Clone()
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, invalid("ca: %v", err)
		}
		to.RootCAs = x509.NewCertPool()
		if !to.RootCAs.AppendCertsFromPEM(text) {
			return nil, invalid("ca=%s: no certificate in it", f.ca)
		}
	}
	if f.cert == "" && f.key == "" {
		return to, nil
	}
	own, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, invalid("cert=%s and key=%s: %v", f.cert, f.key, err)
	}
	to.Certificates = []tls.Certificate{own}
	return to, nil
}
