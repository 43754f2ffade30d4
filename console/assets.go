package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"github.com/valyala/fasthttp"
	"remit/internal/chart"
)

//go:embed static
var staticFiles embed.FS

const assetPrefix = Prefix + "/static/"

// assets are the files that pages load. Their names contain a hash of their content, so browsers may keep them for good.
type assets struct {
	names map[string]string // with the hash, by the file's own name
	files map[string]asset  // by the name with the hash
}

type asset struct {
	content []byte
	kind    string
}

var assetKinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func loadAssets() *assets {
	a := &assets{map[string]string{}, map[string]asset{}}
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err) // the directory is embedded
	}
	for _, entry := range entries {
		content, err := staticFiles.ReadFile("static/" + entry.Name())
		if err != nil {
			panic(err)
		}
		a.add(entry.Name(), content)
	}
	a.add("chart.css", []byte(chart.CSS))
	return a
}

func (a *assets) add(name string, content []byte) {
	sum, ending := sha256.Sum256(content), path.Ext(name)
	hashed := strings.TrimSuffix(name, ending) + "." + hex.EncodeToString(sum[:6]) + ending
	a.names[name], a.files[hashed] = hashed, asset{content, assetKinds[ending]}
}

// path returns where a file is. It panics for one that does not exist, so no template names one.
func (a *assets) path(name string) string {
	hashed, found := a.names[name]
	if !found {
		panic(fmt.Sprintf("console: there is no file static/%s", name))
	}
	return assetPrefix + hashed
}

// assetName returns the name of the file that a request asks for.
func assetName(ctx *fasthttp.RequestCtx) (name string, asks bool) {
	if !ctx.IsGet() && !ctx.IsHead() {
		return "", false
	}
	return strings.CutPrefix(string(ctx.URI().PathOriginal()), assetPrefix)
}

// ownName returns this version's name of a file that a page of another version asks for while instances are upgraded.
func (a *assets) ownName(name string) string {
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return ""
	}
	return a.names[parts[0]+"."+parts[2]]
}

func (a *assets) answer(ctx *fasthttp.RequestCtx, name string) {
	file, found := a.files[name]
	if !found {
		if file, found = a.files[a.ownName(name)]; !found {
			ctx.SetStatusCode(fasthttp.StatusNotFound)
			return
		}
	} else {
		ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=31536000, immutable")
	}
	ctx.Response.Header.SetContentType(file.kind)
	ctx.Response.SetBodyRaw(file.content)
}
