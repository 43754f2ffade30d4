package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Arrange reorders a command line for the parser, which accepts flags only after their command:
//
//	remit --addr URL agent list   flags of a command may precede it
//	remit help agent create       is remit agent create --help
//	remit --listen ADDRESS        a line without a command means serve
//	remit keys retire signing -Q… a key id may begin with a dash
func Arrange(app *kong.Application, args []string) []string {
	args = keyIDsLast(args)
	if len(args) > 0 && args[0] == "help" {
		return append(slices.Clone(args[1:]), "--help")
	}
	flags, rest := leadingFlags(app, args)
	if len(rest) == 0 {
		if asksForHelp(flags) {
			return flags
		}
		return append([]string{"serve"}, flags...)
	}
	words := commandWords(app.Node, rest)
	if words == 0 {
		return rest // without the flags, so that the parser reports the unknown command
	}
	return slices.Concat(rest[:words], flags, rest[words:])
}

// keyIDLength is the length of a signing key's id, a SHA-256 thumbprint in base64url (RFC 7638). One in 64 begins with a dash.
const keyIDLength = 43

// keyIDsLast moves key ids that look like flags to the end, behind a --.
func keyIDsLast(args []string) []string {
	var ids, rest []string
	for _, arg := range args {
		switch {
		case arg == "--":
			return args
		case len(arg) == keyIDLength && arg[0] == '-' && arg[1] != '-':
			ids = append(ids, arg)
		default:
			rest = append(rest, arg)
		}
	}
	if ids == nil {
		return args
	}
	return slices.Concat(rest, []string{"--"}, ids)
}

// asksForHelp reports whether the flags ask for the help or version of the program itself.
func asksForHelp(flags []string) bool {
	return len(flags) == 1 && slices.Contains([]string{"-h", "--help", "--version"}, flags[0])
}

// leadingFlags splits the arguments at the first one that is neither a flag nor a flag's value.
func leadingFlags(app *kong.Application, args []string) (flags, rest []string) {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") || args[i] == "--" {
			return args[:i], args[i:]
		}
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !hasValue && takesValue(app.Node, name) {
			i++
		}
	}
	return args, nil
}

// takesValue reports whether any command has a flag of this name that takes a value.
func takesValue(node *kong.Node, name string) bool {
	for _, flag := range node.Flags {
		if flag.Name == name {
			return !flag.IsBool()
		}
	}
	return slices.ContainsFunc(node.Children, func(child *kong.Node) bool { return takesValue(child, name) })
}

// commandWords returns how many of the first words name a command.
func commandWords(node *kong.Node, words []string) int {
	for n, word := range words {
		i := slices.IndexFunc(node.Children, func(child *kong.Node) bool {
			return child.Type == kong.CommandNode && (child.Name == word || slices.Contains(child.Aliases, word))
		})
		if i < 0 {
			return n
		}
		node = node.Children[i]
	}
	return len(words)
}
