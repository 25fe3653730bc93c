# Logs in, queries, uploads, and reads all posts page by page, with the package requests.
import sys

import requests

server = sys.argv[1] if len(sys.argv) > 1 else 'http://localhost:8080'
login = requests.post(f'{server}/auth/login', json={'username': 'user', 'password': 'password'})
login.raise_for_status()
headers = {'Authorization': f"Bearer {login.json()['access_token']}"}

query = 'query ($first: Int) { allPosts(first: $first) { id title comments { content } } }'
request = {'query': query, 'variables': {'first': 2}}
body = requests.post(f'{server}/graphql', json=request, headers=headers).json()
if 'errors' in body:
    raise SystemExit(body['errors'][0]['message'])

with open(__file__, 'rb') as file:
    url = f'{server}/api/multiparts/simple'
    requests.post(url, files={'part': file}, headers=headers).raise_for_status()

path = '/posts?limit=100'
while path:
    page = requests.get(server + path, headers=headers)
    print(*(post['title'] for post in page.json()), sep='\n')
    path = page.links.get('next', {}).get('url')
