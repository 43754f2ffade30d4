package cli

import (
	"os"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown with the command's own.
func (completion) Help() string {
	return `bash and zsh: source <(remit completion bash), or zsh. fish: remit completion fish | source. In the shell's init file it lasts.`
}

// Run prints what the shell must read. The shell then asks this program how a line goes on.
func (c completion) Run(parsed *kong.Context) error {
	return (&kongcompletion.Completion{Shell: c.Shell, Code: true}).Run(parsed)
}

// Complete answers a shell that asks how a line goes on, and ends the process. Unless one asks it does nothing, so that
// the service's start does not pay for it.
func Complete(parser *kong.Kong) {
	if os.Getenv("COMP_LINE") != "" {
		kongcompletion.Register(parser)
	}
}
