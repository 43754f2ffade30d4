package docs

import (
	"regexp"
	"testing"
)

func TestTheTutorialWorksWhenPasted(t *testing.T) {
	t.Parallel()
	promised := shownOn(t, "docs/tutorial.md", "(?s)```text\n(step 1: .*?)```") // what the agent says, word for word
	inEachShell(t, func(t *testing.T, shell string) {
		printed := pasteAt(t, shell, "127.0.0.1:"+freePort(t), blocksOf(t, "docs/tutorial.md"))
		wantPrinted(t, printed, promised[1])
		for _, line := range []string{
			`stopped: max_value_usd is reached, 0\.0\d+ USD of 0\.1 used`,    // after the top-up
			`active +actions \d+/100 +value 0\.\d+(\+0\.\d+ held)?/0\.1 USD`, // of session watch, without a terminal
			`stopped: no access token: the agent and secret do not match a live agent`,
			`STATUS +revoked`,
			`"type":"agent\.revoked"`,
		} {
			if !regexp.MustCompile(line).MatchString(printed) {
				t.Errorf("nothing matches %s in:\n%s", line, printed)
			}
		}
	})
}

// pasteAt is paste with the service at this address.
func pasteAt(t *testing.T, shell, address, commands string) string {
	t.Helper()
	return paste(t, shell, commands, "REMIT_LISTEN="+address, "REMIT_ADDR=http://"+address)
}
