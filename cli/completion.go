package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"

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
func (c completion) Run() error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = fmt.Print(completionScript(c.Shell, path))
	return err
}

// completionScript makes a shell ask the program at the path, whatever is in that: kong-completion's own script has it
// unquoted. bash, and zsh like it, evaluate the argument of -C once more when they complete.
func completionScript(shell, path string) string {
	complete := "complete -o default -o bashdefault -C " + quoted(quoted(path)) + " remit\n"
	switch shell {
	case "zsh":
		return "autoload -U +X bashcompinit && bashcompinit\n" + complete
	case "fish":
		return `function __complete_remit
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct)
    and set COMP_LINE "$COMP_LINE "
    '` + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(path) + `'
end
complete -f -c remit -a "(__complete_remit)"
`
	}
	return complete
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./@%+,:-]+$`)

// quoted is text as one word of a POSIX shell.
func quoted(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Complete answers a shell that asks how a line goes on, and ends the process. Unless one asks it does nothing, so that
// the service's start does not pay for it.
func Complete(parser *kong.Kong) {
	if os.Getenv("COMP_LINE") != "" {
		kongcompletion.Register(parser)
	}
}
