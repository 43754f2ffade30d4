package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// version is set by scripts/release.sh. A binary that was built otherwise has what the Go command knows of its source.
var version string

// versionFlag is --version. It has no environment twin: a REMIT_VERSION that a deployment sets must not stop the service.
type versionFlag struct {
	Version kong.VersionFlag `env:"-" help:"Print the version and exit."`
}

// release is the version of the service, wherever it is told.
func release() string {
	known := version
	if info, ok := debug.ReadBuildInfo(); ok {
		known = cmp.Or(known, info.Main.Version)
	}
	return cmp.Or(known, "unknown")
}

// versionText is what --version prints: which release, of which commit, for which machine.
func versionText() kong.Vars {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = " " + setting.Value
			}
		}
	}
	return kong.Vars{"version": fmt.Sprintf("remit %s%s %s/%s %s", release(), commit,
		runtime.GOOS, runtime.GOARCH, runtime.Version())}
}
