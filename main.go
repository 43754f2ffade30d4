// Command remit gives every AI agent a remit: who it is, what it may do, and how much it may do.
package main

import "remit/internal/service"

// version is set by scripts/release.sh. Other builds report what the Go command recorded about their source.
var version string

func main() { service.Main(version) }
