package service

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// version is what Main was given: set by scripts/release.sh. Other builds report what the Go command recorded about their source.
var version string

// versionFlag is --version. It reads no environment variable: a deployment that sets REMIT_VERSION must still start.
type versionFlag struct {
	Version kong.VersionFlag `env:"-" help:"Print the version and exit."`
}

// release returns the version of the service, or "unknown".
func release() string {
	known := version
	if info, ok := debug.ReadBuildInfo(); ok {
		known = cmp.Or(known, info.Main.Version)
	}
	return cmp.Or(known, "unknown")
}

// versionText returns what --version prints: the release, its commit and its platform.
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
