"""The grammars that ship: what each program may be asked, what it may never be asked, and what the tables promise."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.contracts.grammars import Commands, OwnGrammar, SetName
from steersman.judges.command_line import split
from steersman.judges.commands import Approved, Blocked, approve, known, sets_on
from steersman.judges.grammar import Fitted, Option, fit
from steersman.judges.grammars import SETS, shipped
from steersman.judges.grammars.python_modules import FOLDER, MODULE, PYTHONS_OWN
from steersman.judges.searches import Search

ALL = Commands(sets=tuple(SETS), scripts=("lint", "test:unit"), targets=("verify",))
GRAMMARS = shipped(ALL.scripts, ALL.targets)

ACCEPTED = """
pytest
pytest -q
pytest -q tests
pytest -xvs tests/test_a.py
pytest -vv -rA --tb=short --maxfail=1 tests/test_a.py::TestX::test_y
pytest -k "login and not slow" -m "not (slow or net)"
pytest 'tests/test_a.py::test_x[1-a b]'
pytest -n auto --durations 10
pytest -n4
pytest -W error -W ignore::DeprecationWarning
pytest -Werror
pytest --pythonwarnings=default
pytest -q -p no:cacheprovider -p no:randomly
pytest --cov
pytest --cov -q
pytest tests --cov
pytest --cov=src --cov=app/core --cov-branch --cov-report=term-missing tests
pytest --cov=. --cov-report term
pytest --no-cov tests/test_a.py
pytest --log-level=DEBUG --randomly-seed=1
pytest "tests/my folder/test_a.py"
python -m pytest -q --no-header
python3 -m pytest ./tests/
python3.11 -m pytest -q
python3.8 -m unittest tests.test_a
python3.15 -m unittest discover
python3.12 -m ruff check
python -m unittest
python3 -m unittest -v tests.test_a tests.test_b.Case.test_c
python -m unittest tests/test_a.py
python -m unittest ./test/test_a.py
python -m unittest shop.tests.test_cart
python -m unittest tests
python -m unittest tests.test_secrets
python -m unittest discover
python -m unittest discover -s tests -p 'test_*.py' -t .
python -m unittest discover -v tests
python -m unittest discover -s test -p '*_test.py'
python -m unittest discover -s src/shop -p 'test*'
python -m unittest discover -s . -p 'Test*.py'
pytest tests/secrets tests/test_credentials.py tests/id_mapping
pytest specs/cart_spec.py
ruff check src/credentials.py
go test -timeout 1h -parallel 16 ./...
go test -timeout=3600s -p 16 ./...
go test -timeout 1m30s ./...
ruff check
ruff check . --no-cache --output-format=concise
ruff check src tests
ruff check --statistics
ruff format --check
ruff format --check --diff src
ruff format --diff .
python -m ruff check src
python -m ruff format --check
mypy src
mypy --strict .
mypy -p app -p app.core
python -m mypy src
python3 -m mypy --strict --package=app
npm test
npm t
npm t --silent
npm test --workspaces
npm run test -ws
npm run test
npm run lint
npm run test:unit --silent
go test ./...
go test -v -race -count=1 ./pkg/... ./cmd
go test . -run '^TestA$/sub' -timeout 30s -tags=integration
cargo test
cargo test --workspace --all-features my::test -- --nocapture --test-threads=1
cargo test -p my-crate -j2
make test
make -s -j4 test
make verify
git status
git status --short --branch
git status --porcelain=v2 -uno
git diff --stat
git diff --name-only HEAD~1 --cached
git diff --numstat HEAD 0123abcd
find . -name '*.py'
find src tests -type f -name '*.py' -not -path './.git/*' -maxdepth 3
grep -rn word src
grep -rnE --include='*.py' 'def (a|b)' .
grep -A3 -i word README.md
grep -n -e word README.md
grep -rn -e one -e other src
grep README.md -e word
grep --regexp=word README.md
grep -rn word .
grep -rn password src
grep -rn --include='*.json' word config
grep -rn --include='*_test.go' --exclude='.env*' --exclude-dir=node_modules word .
grep -rn --include='README*' word .
rg word
rg -g '*.json' word
cat tests/test_secrets.py docs/passwords.md package.json .github/workflows/ci.yml .gitignore
cat config/settings.toml src/tokens.json
find . -name .env
rg -n 'fn main' src
rg -e one -e other src
rg -g '*.rs' -t rust -C 2 unsafe
sed -n 10,20p src/app.py
sed -n '/class/p' src/app.py
sed -n '/def add/,/return/p' src/app.py
sed -n '5,/end/p' src/app.py
sed -n '/def add/,$p' src/app.py
sed -n '/def add/,+5p' src/app.py
sed '/one/,/other/d' src/app.py
sed s/one/other/g notes.txt
awk '{print $1, $NF}' data.txt
awk -F, 'NR==1 {print $2}' data.csv
awk -F: '/word/' data.txt
awk NR==1 data.txt
awk 'NR >= 2 && NR <= 5' data.txt
awk 'END {print NR}' data.txt
sort seed.txt
ls
ls -la src
ls -1R src tests/
ls --all
wc -l src/app.py
wc -lw README.md src/app.py
sort -t, -k2,2n -u data.csv
cat README.md src/app.py
cat -n src/app.py
head -n 20 src/app.py
head -5 src/app.py
tail -n +5 src/app.py
tail -c 1000 log.txt
uv run pytest -q tests
uv run --frozen --group dev python -m pytest -x
uv run --extra=test mypy src
poetry run pytest -q
hatch run pytest -q
hatch run lint
hatch test tests/test_a.py
tox
tox run -e py311,lint -q
pnpm test
pnpm run lint
yarn test
yarn run test
bun test src/a.test.ts -t 'adds'
bun run lint
node --test
node --test --test-name-pattern 'adds two'
node --test --experimental-test-coverage
node --test --test-name-pattern='adds two' 'tests/**/*.test.js'
node --test --test-reporter=tap tests/a.test.js
vitest run src/a.test.ts -t 'adds two'
npx --no-install vitest run --reporter=verbose
vitest run --coverage
jest --ci --runInBand tests/a.test.js
jest --coverage
npx --no-install jest -t 'adds two'
tsc --noEmit
tsc -p packages/a/tsconfig.build.json --noEmit
npx --no-install tsc --noEmit
eslint . --max-warnings=0
eslint --ext .ts,.tsx 'src/**/*.ts'
go vet ./...
go build -o /dev/null ./...
cargo check --all-targets
cargo build
cargo build --release --locked -p core
cargo fmt --check
cargo fmt --all --check
cargo fmt -- --check
cargo fmt --all -- --check
cargo nextest run
cargo nextest run --workspace --no-fail-fast my::test
cargo clippy --workspace -- -D warnings
./gradlew test --offline --no-daemon
gradle :app:test --tests com.example.CartTest
./gradlew clean test
./gradlew test --info
./gradlew :app:clean :app:test -i
gradle --no-daemon clean check test
mvn test -q -B
mvn -B verify -Dtest=CartTest#adds
mvn clean test
mvn -B clean verify -pl core
./mvnw clean test -q
./mvnw test -pl core,app -am
""".strip().splitlines()

REFUSED = """
pytest -p evil
pytest -pevil
pytest -p no:terminal
pytest -p no:steersman_witness
pytest -p no:python
pytest -pno:xdist
pytest -c evil.ini
pytest --config-file=evil.ini
pytest -o addopts=x
pytest -oaddopts=x
pytest --override-ini=python_files=x
pytest --rootdir=.
pytest --basetemp=x
pytest --confcutdir=x
pytest --import-mode=append
pytest --pyargs os
pytest --junitxml=x.xml
pytest --junit-xml x.xml
pytest --junitx=x
pytest --log-file=x
pytest --debug
pytest --debug=x
pytest --pastebin=all
pytest --cov-config=x
pytest --cov=..
pytest --cov=/etc
pytest --cov=antigravity.x
pytest --cov antigravity.x
pytest --cov tests
pytest --cov-report=html
pytest --cov-report=xml:x
pytest --cov-fail-under=0
pytest --randomly-seed=last
pytest --log-level=x
pytest --pdb
pytest --pdbcls=x:y
pytest --trace
pytest --co
pytest --collect-only
pytest --setup-plan
pytest --setup-only
pytest --fixtures
pytest --markers
pytest --version
pytest -V
pytest -h
pytest --help
pytest --cache-show
pytest --cache-clear
pytest --lf
pytest --last-failed
pytest --lfnf=none
pytest --doctest-modules
pytest --doctest-glob=*
pytest --sw
pytest --deselect tests/a.py
pytest --ignore=tests
pytest --ignore-glob=*
pytest --noconftest
pytest --continue-on-collection-errors
pytest -W error::evil.Boom
pytest -W error::Boom
pytest -W error:text
pytest -W ignore::evil.x:mod:1
pytest -Werror::evil.Boom
pytest --pythonwarnings=error::evil.Boom
pytest --pythonwarnings=x
pytest --runpytest=x
pytest -n 1000
pytest -n 17
pytest -xp evil
pytest -qc evil.ini
pytest --maxfail=0x10
pytest --tb=../x
pytest @args.txt
pytest /etc/passwd
pytest ../other
pytest tests/../../x
pytest a/..
pytest .git/hooks
pytest .GIT/x
pytest .steersman/x
pytest ~
pytest -- tests
pytest +x
pytest --maxfail=١
Pytest
pytest.exe
./pytest
/usr/bin/pytest
bin/pytest
python
python -c x
python -m
python -m pdb -m pytest
python -m pip install x
python -mpytest
python -I -m pytest
python -X importtime -m pytest
python -W error -m pytest
python -B -m pytest
python evil.py
python -m unittest -c
python -m unittest --help
python -m unittest antigravity
python -m unittest this
python -m unittest idlelib.idle_test.test_config
python -m unittest unittest.test
python -m unittest test.test_bool
python -m unittest json
python -m unittest _pyio
python -m unittest __main__
python -m unittest tests. antigravity
python -m unittest setup.py
python -m unittest pip
python -m unittest setuptools.dist
python -m unittest scripts/deploy.py
python -m unittest tests/
python -m unittest .
python -m unittest discover antigravity
python -m unittest discover -s antigravity
python -m unittest discover -s idlelib.idle_test
python -m unittest discover -sjson
python -m unittest discover --start-directory=json/
python -m unittest discover -p '*.py'
python -m unittest discover -p '*'
python -m unittest discover -p 'deploy.py'
python -m unittest discover -p '[a-z]*.py'
python -m unittest discover tests '*.py'
pytest setup.py
pytest scripts/deploy.py
pytest .env
pytest deploy.py::main
python -m unittest discover -s ..
python -m unittest discover -t /
python2 -m pytest
python3.7 -m pytest
python3.16 -m pytest
python3. -m pytest
python3.11 -c x
python3.11 evil.py
python -m ruff
python -m ruff clean
python -m ruff check --fix
python -m ruff format
python -m mypy -m os
ruff
ruff --version
ruff format .
ruff format
ruff format -q src
ruff format --check --config x
ruff format --check --stdin-filename x
ruff format --check ../x
ruff check --diff
ruff clean
ruff check --fix
ruff check --config x.toml
ruff check --select E
ruff check --ignore E
ruff check --exit-zero
ruff check -e
ruff check --output-file x
ruff check -o x
ruff check --add-noqa
ruff check --watch
ruff check --isolated
ruff check --show-files
ruff check --cache-dir x
ruff check --stdin-filename x
mypy --version
mypy -c x
mypy -m os
mypy -p os
mypy -p json.tool
mypy -p ../x
mypy -p _x
mypy -p
mypy --config-file x
mypy --cache-dir x
mypy --junit-xml x
mypy --html-report x
mypy --install-types
mypy --non-interactive
mypy --python-executable x
mypy --custom-typeshed-dir x
mypy --shadow-file a b
mypy --exclude .
mypy --follow-imports=skip
mypy --ignore-errors
mypy --pdb
mypy @args
npm
npm install
npm ci
npm exec evil
npm run postinstall
npm run build
npm run
npm test --script-shell=./evil
npm --prefix x test
npm -C x test
npm test --prefix x
npm test -w x
npm test --workspace=x
npm test --userconfig=x
npm test --ignore-scripts
npm test --if-present
npm test --dry-run
npm test --node-options=--require=./evil.js
npm test -- x
npm test -- -t adds
npm t --if-present
npm t -- x
npm tst
npm test --workspaces --if-present
npm test x
npx evil
npx jest
npx vitest run
npx tsc --noEmit
npx eslint .
npx -y jest
npx --yes jest
npx --package=evil jest
go
go run .
go generate ./...
go install ./...
go get x
go mod tidy
go env -w A=b
go test -exec ./evil ./...
go test -exec=./evil ./...
go test --exec=./evil ./...
go test -toolexec=x ./...
go test -overlay=x ./...
go test -modfile=x ./...
go test -mod=mod ./...
go test -C x ./...
go test -c ./...
go test -o x ./...
go test -coverprofile=x ./...
go test -cpuprofile x ./...
go test -outputdir=x ./...
go test -trace=x ./...
go test -ldflags=x ./...
go test -gcflags=x ./...
go test -vet=off ./...
go test -skip=Test ./...
go test -list=. ./...
go test -n ./...
go test -x ./...
go test -work ./...
go test -a ./...
go test -count=0 ./...
go test -count=1000000 ./...
go test -timeout=0 ./...
go test -timeout=61m ./...
go test -timeout=3601s ./...
go test -timeout=9999m ./...
go test -timeout=24h ./...
go test -timeout=1h1m ./...
go test -timeout=1000000000000s ./...
go test -p=1000 ./...
go test -parallel=1000 ./...
go test -cpu=1,2,4,1000 ./...
go test -bench=. ./...
go test -benchtime=1000h ./...
go test -fuzz=Fuzz ./...
go test -fuzztime=1000h ./...
cargo test -j 1000
cargo test -j0
cargo test -- --test-threads=1000
pytest --count=1000000
pytest --maxfail=1000000
pytest --timeout=0
pytest --timeout=1000000
pytest --durations=1000000
pytest -n 0x10
pytest --dist=loadfile
go test ./... -args x
go test net/http
go test all
go test ../x
go test ./../x
go test /x
go vet -vettool=x ./...
go build -o x ./...
go build -o=x ./...
go build -buildmode=plugin ./...
cargo
cargo run
cargo build --target-dir x
cargo build --config x
cargo build -- -x
cargo nextest
cargo nextest list
cargo nextest run --no-tests=pass
cargo nextest run --config-file x
cargo nextest run --no-run
cargo nextest archive
cargo install x
cargo +nightly test
cargo --config x test
cargo test --config x
cargo test --manifest-path x
cargo test --target-dir x
cargo test --target x
cargo test --no-run
cargo test --message-format json
cargo test -Z unstable-options
cargo test --artifact-dir x
cargo test -- --list
cargo test -- --skip x
cargo test -- --logfile x
cargo test -- --bench
cargo clippy --fix
cargo clippy --fix --allow-dirty
cargo fmt
cargo fmt --all
cargo fmt -- x
cargo fmt --check -- --config-path=x
cargo fmt --check --manifest-path x
make
make install
make test deploy
make -f x test
make --file=x test
make --makefile=x test
make -C x test
make --directory=x test
make --eval=x test
make -E x test
make -I x test
make -n test
make --dry-run test
make -t test
make -q test
make -i test
make --ignore-errors test
make -o x test
make -W x test
make -j test
make -j1000 test
make test A=b
make A=b test
make test SHELL=./evil
make -sk test
git
git log
git diff
git status x
git -c core.pager=x status
git -C x status
git --exec-path=x status
git --git-dir=x status
git -p status
git status --ignore-submodules=none
git diff --stat --output=x
git diff --stat --ext-diff
git diff --stat --textconv
git diff --stat --no-index a b
git diff --stat -O x
git diff --stat -- x
git diff --stat origin/main
git diff --stat --stat-width=9
git diff --st
git show
git fetch
git push
find . -exec touch x ;
find . -execdir x ;
find . -ok x ;
find . -okdir x ;
find . -delete
find . -fprint x
find . -fprint0 x
find . -fprintf x y
find . -fls x
find -L . -name x
find -H . -name x
find . -follow
find / -name x
find .. -name x
find . -name x -quit
find . -files0-from x
find -files0-from x
find . -newer /etc/passwd
find . -D exec
grep -f x y
grep -e x .env
grep -e x -f y
grep -e
grep .env -e x
grep -e x /etc/passwd
grep -e -f y
grep -fx y
grep --file=x y
grep -R x .
grep -P x y
grep x /etc/passwd
grep x ../y
grep -r --include=../x y .
grep --exclude-from=x y .
grep -D read x y
grep -z x y
rg --pre x y
rg --pre=x y
rg --pre-glob x y
rg --hostname-bin=x y
rg -f x y
rg -e x .env
rg -e x --pre y
rg --file=x y
rg --follow x
rg -L x
rg -z x
rg --search-zip x
rg --ignore-file=x y
rg --hidden x
rg -uuu x
rg x /etc
sed -i s/a/b/ x
sed -ibak s/a/b/ x
sed --in-place s/a/b/ x
sed -n '1e id' x
sed -e p x
sed -f x y
sed -s p x
sed 'w x' y
sed 'r x' y
sed 's/a/b/w x' y
sed 's/a/b/e' y
sed 's/a/b/ge' y
sed 's,a,b,' y
sed '1!G;h;$!d' y
sed p /etc/passwd
sed -n 1p
sed -n '/a/,/b/e id' y
sed -n '/a/,/b/w x' y
sed -n '/a/,/b/' y
sed '/a/r .env' y
sed -n '/a/,/b/p;e' y
sed -n '1,/a' y
sed -n '/a\\/,/b/p' y
awk 'BEGIN{system("id")}' x
awk '{print > "x"}' y
awk '{print | "sh"}' y
awk '{print $1; system("id")}' y
awk '{getline < "x"}' y
awk '@include "x"' y
awk -f x y
awk -v a=b '{print}' y
awk '{print ENVIRON["A"]}' y
awk '{print}' a=b
awk '{print}' /etc/passwd
awk '{print}'
awk -l x '{print}' y
awk --source x y
awk 'NR==1;system("id")' y
awk 'NR=1' y
awk 'NR==1 | "sh"' y
awk 'NR > "x"' y
awk END y
awk 'NR==1'
sort -o x y
sort -ox y
sort --output=x y
sort -T x y
sort -S 1b y
sort --compress-program=x y
sort --compress-prog=x y
sort --files0-from=x
sort -R --random-source=x y
sort --parallel=1000 y
sort
sort /etc/passwd
cat
cat /proc/self/environ
cat ../x
cat .git/config
cat .env
cat config/.env.local
cat id_rsa
cat keys/server.pem
cat .ssh/config
cat -
head -c 1G x
head -c 10000000 x
head /dev/zero
tail -f x
tail -F x
tail --follow x
tail --retry x
tail --pid=1 x
less x
more x
ls ..
ls /
ls ~
ls .git
ls -la .ssh
ls --hyperlink
ls -L x
ls -Z
wc
wc -l
wc --files0-from=x
wc -l .env
wc -l ../x
tar cf x y
perl -e x
ruby -e x
node -e x
node x.js
node --require ./x --test
node --test --require ./x
node --test --import ./x
node --test --loader ./x
node --test --env-file=x
node --test --test-reporter=./x.js
node --test --test-reporter-destination=x
node --test --inspect
node --test --watch
node --test ../x
node --test '**/*.js'
node --test scripts/deploy.js
node --test 'tests/.env*'
eslint '.env*'
eslint 'keys/*.pem'
ruff check secrets.yml
mypy .env
sh -c x
bash x
env pytest
nohup pytest
sudo pytest
time pytest
xargs pytest
timeout 1 pytest
nice pytest
uv
uv pip install x
uv sync
uv run
uv run python
uv run python -c x
uv run evil
uv run ./evil.py
uv run --with evil pytest
uv run --with-requirements x pytest
uv run --python x pytest
uv run -p x pytest
uv run --directory x pytest
uv run --project x pytest
uv run --env-file x pytest
uv run --index x pytest
uv run --isolated pytest
uv run --script x
uv run -m pytest
uv run -- pytest
uv run pytest -p evil
uv run uv run pytest
uvx pytest
poetry run python evil.py
poetry run pytest -p evil
poetry -C x run pytest
poetry install
hatch run deploy
hatch run python -c x
hatch -e x run pytest
hatch shell
tox -c x
tox --conf x
tox --workdir x
tox -x a=b
tox -r
tox -- x
tox exec -- x
tox -l
nox
pnpm
pnpm install
pnpm -r test
pnpm exec x
pnpm dlx x
pnpm --dir x test
pnpm -C x test
pnpm run build
yarn
yarn install
yarn dlx x
yarn exec x
yarn --cwd x test
yarn node x
yarn run build
bun x evil
bun install
bun evil.ts
bun run build
bun test --preload ./x
bun test -r ./x
bun test --config=x
bun test --cwd=x
bun test --update-snapshots
bun test --env-file=x
vitest
vitest watch
vitest run --config x
vitest run -c x
vitest run --root x
vitest run --dir x
vitest run --outputFile=x
vitest run --reporter=./x.js
vitest run --passWithNoTests
vitest run -u
vitest run --update
vitest run --globalSetup=x
vitest run --environment=./x
vitest run --ui
vitest run --inspect
vitest bench
jest -c x
jest --config=x
jest --rootDir=x
jest --passWithNoTests
jest --watch
jest --watchAll
jest -u
jest --ci --updateSnapshot
jest --outputFile=x --json
jest --reporters=./x.js
jest --testRunner=./x
jest --setupFiles ./x
jest --globalSetup=./x
jest --testEnvironment=./x
jest --listTests
jest --showConfig
jest --onlyChanged
jest -o
jest --init
jest --clearCache
jest --cacheDirectory=x
jest --coverageDirectory=x
jest ../x
tsc
tsc --noEmit --build
tsc --noEmit --watch
tsc --noEmit -w
tsc --noEmit --outDir x
tsc --noEmit --generateTrace x
tsc --noEmit -p ../tsconfig.json
tsc --noEmit -p evil.json
tsc --noEmit --plugins x
tsc --init
tsc --noEmit @args.txt
eslint --fix .
eslint --fix-dry-run .
eslint -c x .
eslint --config x .
eslint --rulesdir x .
eslint --plugin x .
eslint --parser x .
eslint --resolve-plugins-relative-to x .
eslint --rule x .
eslint -o x .
eslint --output-file=x .
eslint --format=./x.js .
eslint -f ./x.js .
eslint --cache .
eslint --cache-location=x .
eslint --no-eslintrc .
eslint --no-config-lookup .
eslint --no-error-on-unmatched-pattern .
eslint --ignore-pattern=x .
eslint --stdin
eslint --print-config x
eslint --env-info
eslint --init
eslint ../x
gradle
gradle build
gradle publish
gradle clean
gradle clean publish
gradle test clean
./gradlew clean clean
./gradlew :app:clean
./gradlew
./gradlew test -I x
./gradlew test --init-script x
./gradlew -b x test
./gradlew -c x test
./gradlew -p x test
./gradlew test -Px=y
./gradlew test -Dx=y
./gradlew test -g x
./gradlew test -x test
./gradlew test --dry-run
./gradlew test -m
./gradlew test --continuous
./gradlew test --include-build x
./gradlew test --project-cache-dir x
../gradlew test
gradlew test
mvn
mvn install
mvn clean
mvn clean install
mvn test clean
mvn clean test install
mvn deploy
mvn exec:java
mvn test -f x
mvn test -s x
mvn test -gs x
mvn test -DskipTests
mvn test -Dmaven.test.skip=true
mvn test -Dtest=../x
mvn test -Dexec=x
mvn test -P x
mvn test -fn
mvn test -t x
mvn test -l x
mvn test install
rm -rf .
touch x
curl x
tee x
vim x
-q
""".strip().splitlines()

SECRETS = """
.env .env.local .env.production .envrc prod.env .netrc _netrc .npmrc .pypirc .git-credentials .gitconfig
.pgpass .htpasswd .my.cnf .mylogin.cnf .s3cfg .boto .dockercfg .vault-token .bash_history .claude.json
.claude/.credentials.json credentials credentials.json config/credentials.yml.enc service-account.json
serviceAccountKey.json gcp-service_account.json auth.json client_secret_1.json id_rsa id_rsa.bak
keys/id_ed25519 id_work server.pem SERVER.PEM a/b.key cert.p12 cert.pfx vault.kdbx .docker/config.json
.aws/credentials .aws/config .ssh/config .ssh/known_hosts .kube/config .config/gh/hosts.yml kubeconfig
kubeconfig.yaml prod.kubeconfig terraform.tfstate terraform.tfstate.backup prod.tfvars secrets.yml
secrets.yaml secrets.toml .streamlit/secrets.toml k8s/secrets/db.yaml .secrets .secrets/x passwords.txt .token
app.keystore debug.jks a.ovpn b.gpg wp-config.php local.settings.json pip.conf .env~ .env.swp Secrets.json
apiKeys.json token.txt api-token.json gcp-key.json .dev.vars .dev.vars.staging vault.yml .gradle/gradle.properties
google-services.json GoogleService-Info.plist etc/passwd etc/shadow
"""
GLOBS = """
.env .env* .e* .* .??* *.env *.pem *.pe? *.key *.p12 *.kdbx id_* id_rsa* *_rsa *secret* *credential* credentials* s*.json
.n* .git-* *config* *.tfstate *.tfvars .my.* .claude* *passw* service* [.]env [a-z]*
"""


@pytest.mark.parametrize("name", SECRETS.split())
def test_a_file_that_keeps_secrets_is_shown_by_nothing(name):
    """No reader takes it, nor a checker that would print the line it does not understand; git shows no file at all."""
    for words in (
        ["cat"], ["head", "-n", "5"], ["tail"], ["sort"], ["grep", "x"], ["grep", "-r", "x"], ["rg", "x"], ["sed", "p"],
        ["awk", "{print}"], ["git", "show"], ["git", "blame"], ["git", "diff"], ["git", "log", "-p", "--"], ["git", "cat-file", "-p"],
        ["git", "grep", "x", "--"], ["git", "archive", "HEAD"], ["git", "diff", "--no-index", "/dev/null"],
    ):  # fmt: skip
        for proposal in ([*words, name], [*words, f"./{name}"], [*words, f"HEAD:{name}"]):
            assert isinstance(approve(proposal, (), ALL), Blocked), proposal


@pytest.mark.parametrize("glob", GLOBS.split())
def test_a_glob_for_secrets_is_none_of_a_search(glob):
    """What is written for names of secrets narrows no search; it may leave them out."""
    for words in (
        ["grep", "-r", f"--include={glob}", "x", "."],
        ["rg", "-g", glob, "x"],
        ["rg", f"--glob={glob}", "x"],
    ):
        assert isinstance(approve(words, (), ALL), Blocked), words
    assert isinstance(approve(["grep", "-r", f"--exclude={glob}", "x", "."], (), ALL), Approved)


@pytest.mark.parametrize("word", ["--hidden", "-u", "-uu", "-uuu", "-.", "--no-ignore", "--unrestricted"])
def test_rg_is_never_told_to_look_at_what_it_skips(word):
    """What rg leaves out by itself stays out."""
    assert isinstance(approve(["rg", word, "x"], (), ALL), Blocked)


def test_the_modules_of_this_python_are_known():
    """A module that Python brings is no test of a project, nor a folder of them."""
    there = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    assert there <= PYTHONS_OWN
    for name in sys.stdlib_module_names:
        assert not MODULE.fits(name)
        assert not MODULE.fits(f"{name}.x")
        assert not FOLDER.fits(name) or name.startswith(("_", "test"))


def test_a_search_says_where_it_looks_and_at_what():
    """What has to be looked at on the disk: roots, names, and whether hidden files are among them."""
    grep = approve("grep -rn --include='*.py' --exclude=a.py --exclude-dir=out word src lib", (), ALL).reach
    assert grep.search == Search(
        roots=("src", "lib"), only=("*.py",), without=("a.py",), without_folders=("out",)
    )
    assert approve("grep word README.md", (), ALL).reach.search is None
    assert approve("rg word", (), ALL).reach.search == Search(roots=(".",), hidden=False)
    assert approve("rg -g '*.py' word src", (), ALL).reach.search == Search(roots=("src",), only=("*.py",))
    assert approve("rg -tpy word", (), ALL).reach.search == Search(roots=(".",))
    assert approve("node --test 'tests/**/*.test.js' 'a?/test.js'", (), ALL).reach.folders == ("tests", ".")
    assert approve("python -m unittest tests.test_a tests/test_b.py", (), ALL).reach.there == (
        "tests",
        "tests/test_b.py",
    )


@pytest.mark.parametrize("line", ACCEPTED)
def test_ordinary_commands_fit(line):
    """What a tester ordinarily asks for may run, when its set is on."""
    assert isinstance(approve(line, (), ALL), Approved)


@pytest.mark.parametrize("line", REFUSED)
def test_everything_else_does_not(line):
    """Options that load, write, reach out, wait or run nothing, and programs of no table: refused, every set on."""
    words = split(line)
    proposal = line.split() if not isinstance(words, tuple) else list(words)
    verdict = approve(proposal, (), ALL)
    assert isinstance(verdict, Blocked)
    assert verdict.reason
    assert isinstance(approve(line, (), ALL), Blocked)


# ── what the tables promise ─────────────────────────────────────────────────────────────────────────────────────────


def _options():
    for grammar in GRAMMARS:
        for options in (grammar.options, grammar.tail or ()):
            for option in options:
                yield pytest.param(grammar, option, id=f"{grammar.name} {option.names[0]}")


@pytest.mark.parametrize(("grammar", "option"), list(_options()))
def test_options_are_options(grammar, option):
    """A name begins with a dash, a value has a form to write it in, and an abbreviation of a name is not the name."""
    others = {name for o in (*grammar.options, *(grammar.tail or ())) for name in o.names}
    assert all(name.startswith("-") for name in option.names)
    assert (option.value is None) == (option.forms == ())
    for name in option.names:
        for cut in range(3, len(name)):
            if name.startswith("--") and name[:cut] not in others:
                assert not isinstance(fit((*grammar.starts[0], name[:cut]), grammar), Fitted)


def _values():
    for grammar in GRAMMARS:
        kinds = [
            o.value for o in (*grammar.options, *(grammar.tail or ())) if isinstance(o, Option) and o.value
        ]
        for kind in (*kinds, *grammar.first, *([grammar.rest] if grammar.rest else [])):
            yield grammar, kind


HOSTILE = [
    "", "-", "--", "-x", "--exec", "@x", "+x", "/etc/passwd", "/", "..", "../x", "a/../x", "a/..", "./..", "~", "~/x", "a\nb", "\n",
    "a\0", "$(x)", "`x`", "a;b\n", ".git/config", ".git", "a/.git/x", "\\x", "C:\\x", "file:///x", "http://x/y",
]  # fmt: skip
FILTERS = {"GLOB", "ENDINGS"}  # names are compared with them; no file is opened by one
SEARCHED = {"PATTERN", "SCRIPT", "PROGRAM", "CHAR", "FILTER"}


@pytest.mark.parametrize("word", HOSTILE, ids=ascii)
def test_no_value_takes_a_hostile_word(word):
    """Options, other arguments' files, ways out of the tree, git's own folder and lines are values of nothing."""
    taking = {
        (g.name, kind.name)
        for g, kind in _values()
        if kind.fits(word) and kind.name not in SEARCHED and not (kind.name in FILTERS and word == ".git")
    }
    assert taking == set()


def test_a_searched_text_is_never_an_option():
    """What is looked for may be anything but an option, a file of arguments or several lines."""
    for grammar, kind in _values():
        for word in ("", "-x", "--pre", "a\nb"):
            assert not kind.fits(word), (grammar.name, kind.name, word)


def test_sets_have_one_name_everywhere():
    """The sets of the tables, their descriptions and the names that a project may write are the same."""
    assert {g.set for g in GRAMMARS} == set(SETS)
    assert set(SETS) == set(SetName.__args__)


def test_names_are_unique():
    """A grammar is known by its name."""
    names = [g.name for g in GRAMMARS]
    assert len(names) == len(set(names))


# ── which are on ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_tests_are_on_without_being_asked_for():
    """A project that says nothing has the set `tests`; reading and launchers are off, and the reason says how to turn them on."""
    assert sets_on((), Commands()) == {"own", "tests"}
    assert isinstance(approve("pytest -q"), Approved)
    for line in ("find . -name x", "uv run pytest", "tox", "yarn test", "go vet ./..."):
        verdict = approve(line)
        assert isinstance(verdict, Blocked)
        assert "to sets under [commands]" in verdict.reason


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ruff clean", "after `ruff` has to come `check` or `format`, not `clean`"),
        ("ruff format", "`ruff format` needs --check or --diff"),
        ("cargo run", "after `cargo` has to come `test`, not `run`"),
        ("python -m pip", "after `python -m` has to come `pytest` or `unittest` or `ruff` or `mypy`, not `pip`"),
        ("python", "after `python` has to come `-m`;"),
        ("npx jest", "after `npx` has to come `--no-install` or `--no`, not `jest`"),
        ("./gradlew publish", "`publish` is not a task"),
        ("git log", "after `git` has to come `status` or `diff`, not `log`"),
        ("mvn clean test -X", "`-X` is not an option"),
        ("grep -e x -f y", "`-f` is not an option"),
        ("frob", "`frob` is not a program of the table"),
    ],
)  # fmt: skip
def test_the_word_without_a_place_is_named(line, words):
    """A program that is known is not said to be unknown: its next words are named, of a set that is off too."""
    assert words in approve(line).reason


def test_a_check_turns_its_launcher_on():
    """Who starts the checks with `uv run` may be asked for `uv run`; looking at files is never turned on that way."""
    checks = (("uv", "run", "pytest", "-q"), ("cat", "README.md"), ("./own", "thing"))
    assert sets_on(checks, Commands()) == {"own", "tests", "uv"}
    assert isinstance(approve("uv run pytest tests/test_a.py", checks), Approved)
    assert isinstance(approve("uv run --with evil pytest", checks), Blocked)
    assert isinstance(approve("cat other.md", checks), Blocked)


def test_a_check_may_be_repeated_word_for_word():
    """A project's own check is approved as it is, as a list or a line, whatever words it holds; nothing like it is."""
    checks = (("./own", "*", ""), ("make", "all"))
    assert approve(["./own", "*", ""], checks).fits == "a check of the project"
    assert approve("make all", checks).set == "checks"
    assert isinstance(approve(["./own", "*"], checks), Blocked)
    assert isinstance(approve(["./own", "x", ""], checks), Blocked)


def test_a_project_adds_its_own():
    """A grammar of the project's own: its words, its flags, values by kind or by list, operands."""
    own = OwnGrammar(
        start=("vendor/bin/phpunit",),
        flags=("--stop-on-failure",),
        values={"--filter": "name", "--order-by": ("random", "default")},
        operands="path",
        least=1,
        most=2,
    )
    commands = Commands(grammars={"phpunit": own})
    good = approve("vendor/bin/phpunit --stop-on-failure --filter=Cart --order-by random tests", (), commands)
    assert (good.fits, good.set, good.proves, good.reach.paths) == ("phpunit", "own", "tests", ("tests",))
    for bad in ("", " tests --order-by=other", " a b c", " tests --filter=../x", " tests --x", " /x"):
        assert isinstance(approve(f"vendor/bin/phpunit{bad}", (), commands), Blocked), bad
    bare = Commands(grammars={"bare": OwnGrammar(start=("./check",), proves="check")})
    assert approve(["./check"], (), bare).proves == "check"
    assert isinstance(approve(["./check", "x"], (), bare), Blocked)
    assert next(g.name for g in known(commands)) == "phpunit"


def test_what_it_proves_is_told():
    """Looking proves nothing, a linter's exit is a check, a runner's needs counted tests."""
    proves = {
        line: approve(line, (), ALL).proves
        for line in ("git status", "ruff check", "uv run mypy", "uv run pytest")
    }
    assert list(proves.values()) == ["nothing", "check", "check", "tests"]


WORDS = st.sampled_from(
    ["pytest", "python", "-m", "-q", "-p", "--co", "tests", "..", "-k", "x", "uv", "run", "--", "npm", "test", "make", "-f", "-n", "3"]
)  # fmt: skip


@given(st.lists(WORDS | st.text(max_size=4), max_size=8))
def test_approved_is_exactly_what_was_proposed(words):
    """Total, and never changes a word: the approved argv is the proposed one."""
    verdict = approve(words, (), ALL)
    if isinstance(verdict, Approved):
        assert verdict.argv == tuple(words)
        assert all(path in "\n".join(words) for path in verdict.reach.paths)
