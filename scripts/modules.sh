# shellcheck shell=bash
# shellcheck disable=SC2034 # used by the scripts that source this
# To be sourced from the top of the repository. The SDK's modules lie inside the service's; ./... alone leaves them out.
#   modules    the directories of the service and of what it uses: . client client/mcp money
#   packages   patterns of the packages of all of them, for go commands that run at the top
# Modules that go.mod does not name are left out: they are programs of tests, with packages of others that take minutes to compile. Their
# tests check them.
modules=() packages=()
while read -r file; do
  module=$(dirname "$file")
  if [ "$module" = . ]; then
    packages+=(./...)
  elif grep -qF " => $module" go.mod; then
    packages+=("$(cd "$module" && go list -m)/...")
  else
    continue
  fi
  modules+=("$module")
done < <(find . -name node_modules -prune -o -name go.mod -print | sort)
