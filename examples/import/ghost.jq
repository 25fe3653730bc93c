# Posts of a Ghost export (Settings, Export), as lines for `import`.
.db[0].data as $data
| ($data.users | map({(.id): .slug}) | add) as $names
| ($data.posts_authors | map(select(.sort_order == 0) | {(.post_id): $names[.author_id]}) | add) as $authors
| $data.posts | map(select(.type == "post")) | sort_by(.created_at)[]
| {
    key: "ghost \(.id)",
    title,
    content: ([.html, .plaintext | select((. // "") != "")] + ["-"])[0],
    status: (if .status == "published" then "PUBLISHED" else "DRAFT" end),
    createdAt: .created_at,
    publishedAt: .published_at,
    author: $authors[.id]
  }
