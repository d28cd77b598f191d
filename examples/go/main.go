// A web program whose processes share one cache. Each page takes half a second to make, and is made once for all of them:
//
//	nuthatch -p 11211
//	NUTHATCH_URL=tcp://127.0.0.1:11211 LISTEN=127.0.0.1:8080 go run .
//	curl http://127.0.0.1:8080/some/page
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	nuthatch "nuthatch.invalid/clients/go"
)

// page is what the cache keeps.
type page struct {
	Path   string
	MadeBy int
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// run serves until it is told to end.
func run() error {
	client, err := nuthatch.Dial(cmp.Or(os.Getenv("NUTHATCH_URL"), "tcp://127.0.0.1:11211"))
	if err != nil {
		return err
	}
	defer client.Close()
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080"))
	if err != nil {
		return err
	}
	fmt.Printf("listens at http://%s\n", listener.Addr())
	told, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := http.Server{Handler: serve(client), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-told.Done():
		// The requests that are under way use the client still.
		return server.Shutdown(context.Background())
	}
}

// serve gives pages out of the cache. All requests share the client, and travel on its one connection.
func serve(client *nuthatch.Client) http.Handler {
	pages := nuthatch.JSON[page](client)
	how := nuthatch.Compute{Lifetime: time.Minute, Early: 10 * time.Second}
	return http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		found, err := pages.GetOrCompute(request.Context(), keyOf(request.URL.Path), how, func(ctx context.Context) (page, error) {
			return render(ctx, request.URL.Path)
		})
		if err != nil {
			http.Error(out, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(out, "%q made by %d\n", found.Path, found.MadeBy)
	})
}

// keyOf hashes the path, which may be longer than a key.
func keyOf(path string) string {
	return fmt.Sprintf("page:%x", sha256.Sum256([]byte(path)))
}

// render stands for work: queries, templates.
func render(ctx context.Context, path string) (page, error) {
	select {
	case <-time.After(500 * time.Millisecond):
		return page{Path: path, MadeBy: os.Getpid()}, nil
	case <-ctx.Done():
		return page{}, ctx.Err()
	}
}
