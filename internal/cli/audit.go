package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"remit/client"
	"remit/internal/auditlog"
)

type auditCommands struct {
	Export exportEvents `cmd:"" help:"Print the organization's events as JSON lines, with a signed checkpoint as the last."`
	Verify verifyExport `cmd:"" help:"Verify an export: say which event was changed, dropped or moved."`
}

type exportEvents struct {
	asOrganization
	After int64 `env:"-" placeholder:"SEQ" help:"Start after the event with this seq. The default is the oldest event kept."`
}

// Help is appended to the command's help.
func (c *exportEvents) Help() string {
	return "Prints one event in a line, exactly as the service wrote it. Save the lines as they are: their bytes are hashed."
}

// Run exports the events up to the checkpoint that it takes first.
func (c *exportEvents) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		jws, err := o.Checkpoint(ctx)
		if err != nil {
			return err
		}
		end, err := auditlog.ReadCheckpoint(jws)
		if err != nil {
			return err
		}
		to := bufio.NewWriter(os.Stdout)
		if err := writeEvents(to, o.ListAllEvents(ctx, c.After), end.Sequence); err != nil {
			return err
		}
		line, err := json.Marshal(struct {
			Checkpoint string `json:"checkpoint"`
		}{jws})
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(to, "%s\n", line) // Flush returns its error
		return to.Flush()
	})
}

// writeEvents writes the events up to the one with this number.
func writeEvents(to io.Writer, events func(func(client.OrganizationEvent, error) bool), last int64) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if e.Sequence > last {
			return nil
		}
		if _, err := fmt.Fprintf(to, "%s\n", e.JSON); err != nil {
			return err
		}
	}
	return nil
}

type verifyExport struct {
	Output
	Export string `arg:"" type:"existingfile" help:"The export."`
	Keys   string `name:"jwks" env:"-" type:"existingfile" placeholder:"FILE" help:"The issuer's keys, as its /.well-known/jwks.json has them. Without them the checkpoint's signature is not verified."`
}

// Run verifies the export, and shows what it contains.
func (c *verifyExport) Run() error {
	file, err := os.Open(c.Export)
	if err != nil {
		return err
	}
	defer file.Close()
	found, err := auditlog.Verify(file)
	if err != nil {
		return err
	}
	end, signed, err := c.verifyCheckpoint(found)
	if err != nil {
		return err
	}
	if !signed {
		why := "give the issuer's keys with --jwks"
		if found.Checkpoint == "" {
			why = "the export has no checkpoint, so events may be missing at its end"
		}
		fmt.Fprintln(os.Stderr, "remit: no signature was verified: "+why)
	}
	issued := second(end.Issued)
	return c.Show(struct {
		First        int64  `json:"first"`
		Last         int64  `json:"last"`
		Hash         string `json:"hash"`
		Signed       bool   `json:"signed"`
		Issuer       string `json:"issuer,omitempty"`
		Organization string `json:"organization_id,omitempty"`
		Issued       string `json:"issued_at,omitempty"`
	}{found.First, found.Last, found.Hash, signed, end.Issuer, end.Organization, issued}, []Fact{
		{"FIRST", strconv.FormatInt(found.First, 10)}, {"LAST", strconv.FormatInt(found.Last, 10)}, {"HASH", found.Hash},
		{"SIGNED", strconv.FormatBool(signed)}, {"ISSUER", end.Issuer}, {"ORGANIZATION", end.Organization}, {"ISSUED", issued},
	})
}

var errUnsigned = errors.New("the export has no checkpoint: it does not end with one, as an export of remit does")

// verifyCheckpoint compares the export with its checkpoint, and returns that and whether it is signed by one of the keys.
func (c *verifyExport) verifyCheckpoint(found auditlog.Result) (end auditlog.Checkpoint, signed bool, err error) {
	if found.Checkpoint == "" {
		if c.Keys == "" {
			return end, false, nil
		}
		return end, false, errUnsigned
	}
	if c.Keys == "" {
		end, err = auditlog.ReadCheckpoint(found.Checkpoint)
	} else {
		var keys []byte
		if keys, err = os.ReadFile(c.Keys); err == nil {
			end, err = auditlog.VerifyCheckpoint(found.Checkpoint, keys)
		}
	}
	if err != nil {
		return end, false, err
	}
	return end, c.Keys != "", found.Check(end)
}
