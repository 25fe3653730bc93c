#!/usr/bin/env bash
# Logs in, writes a post, and prints each comment on it as it arrives, until it has seen the one that it adds.
# usage: comments.sh [SERVER] [USERNAME] [PASSWORD]
set -euo pipefail

server="${1:-http://localhost:8080}"
username="${2:-user}"
password="${3:-password}"
json='Content-Type: application/json'

# Values go into JSON through node, which knows how to quote them.
object() { node -p 'JSON.stringify(Object.fromEntries(process.argv.slice(1).map((a) => a.split(/=(.*)/s))))' "$@"; }
member() { node -p "JSON.parse(fs.readFileSync(0))['$1']"; }

token="$(curl -sSf "$server/auth/login" -H "$json" \
  -d "$(object "username=$username" "password=$password")" | member access_token)"
bearer="Authorization: Bearer $token"
post="$(curl -sSf -D - -o /dev/null "$server/posts" -H "$json" -H "$bearer" \
  -d "$(object 'title=Written by a script' 'content=With curl and bash.')" |
  tr -d '\r' | sed -n 's/^[Ll]ocation: //p')"
echo "post: $post"

# An event stream: one "data:" line for each comment.
exec 3< <(curl -sSN -G "$server/graphql" -H "$bearer" -H 'Accept: text/event-stream' \
  --data-urlencode 'query=subscription { commentAdded { content postId } }')
watcher=$!
trap 'kill "$watcher" 2>/dev/null || true' EXIT
# The first line comes when the subscription is there; comments before it are not among the events.
read -r _ <&3

curl -sSf -o /dev/null "$server$post/comments" -H "$json" -H "$bearer" \
  -d "$(object 'content=Seen by the script itself.')"
while read -r line <&3; do
  [[ "$line" == data:*"${post##*/}"* ]] || continue
  echo "comment: ${line#data: }"
  break
done
