// Command serve runs the fake provider of package fakeprovider, for the pages that bound an agent without paying a provider:
//
//	go run ./test/fakeprovider/serve 127.0.0.1:8089
//
// Its base URLs are http://127.0.0.1:8089/v1 for OpenAI's clients and http://127.0.0.1:8089 for Anthropic's. It takes any key.
package main

import (
	"log"
	"net/http"
	"os"
	"time"

	"remit/test/fakeprovider"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: serve HOST:PORT")
	}
	server := http.Server{Addr: os.Args[1], Handler: new(fakeprovider.Provider), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
