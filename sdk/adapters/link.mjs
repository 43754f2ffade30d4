// Links node_modules/@remit/sdk to the SDK beside this package. npm would write the link into the lock file.
import { mkdirSync, rmSync, symlinkSync } from "node:fs";

const scope = new URL("node_modules/@remit/", import.meta.url);
mkdirSync(scope, { recursive: true });
rmSync(new URL("sdk", scope), { force: true, recursive: true });
symlinkSync("../../../typescript", new URL("sdk", scope));
