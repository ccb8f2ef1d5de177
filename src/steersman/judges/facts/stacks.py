"""Which dependencies are frameworks and which mean a database: tables by ecosystem.

**Invariant:** a name is known or it is not; nothing is guessed from a part of it.
"""

from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, ProjectSource


def _parse_dependency_table(text: str) -> dict[str, str]:
    """`dependency=name` words; a bare word is its own name."""
    pairs = (word.partition("=") for word in text.split())
    return {key: (name or key) for key, _, name in pairs}


# fmt: off
FRAMEWORKS_BY_ECOSYSTEM: dict[str, dict[str, str]] = {
    "python": _parse_dependency_table("django=django flask=flask fastapi=fastapi starlette=starlette litestar=litestar tornado=tornado "
                     "aiohttp sanic=sanic pyramid=pyramid bottle=bottle werkzeug=werkzeug click celery=celery scrapy=scrapy "
                     "streamlit=streamlit torch=pytorch tensorflow=tensorflow scikit-learn pandas numpy=numpy "
                     "sqlalchemy=sqlalchemy pydantic langchain=langchain airflow=airflow apache-airflow=airflow dbt-core=dbt"),
    "javascript": _parse_dependency_table("react=react vue=vue svelte=svelte @angular/core=angular next=next.js nuxt=nuxt "
                         "express=express fastify=fastify koa=koa @nestjs/core=nestjs hono=hono astro=astro "
                         "@remix-run/react=remix gatsby=gatsby electron=electron react-native=react-native "
                         "solid-js=solid preact=preact vite=vite webpack=webpack ember-source=ember @sveltejs/kit=sveltekit"),
    "go": _parse_dependency_table("github.com/gin-gonic/gin=gin github.com/labstack/echo=echo github.com/gofiber/fiber=fiber "
                 "github.com/go-chi/chi=chi github.com/spf13/cobra=cobra google.golang.org/grpc=grpc "
                 "github.com/gorilla/mux=gorilla/mux k8s.io/client-go=client-go sigs.k8s.io/controller-runtime=controller-runtime"),
    "rust": _parse_dependency_table("tokio=tokio axum=axum actix-web=actix rocket=rocket warp=warp clap=clap tauri=tauri bevy=bevy "
                   "leptos=leptos tonic=tonic hyper=hyper diesel=diesel"),
    "jvm": _parse_dependency_table("spring-boot=spring-boot org.springframework.boot=spring-boot io.quarkus=quarkus "
                  "io.micronaut=micronaut io.micronaut.application=micronaut io.ktor=ktor io.ktor.plugin=ktor "
                  "io.vertx=vert.x com.android.application=android com.android.library=android "
                  "org.apache.spark=spark org.apache.kafka=kafka org.hibernate.orm=hibernate"),
    "dotnet": _parse_dependency_table("Microsoft.NET.Sdk.Web=asp.net-core Microsoft.AspNetCore.App=asp.net-core "
                     "Microsoft.NET.Sdk.BlazorWebAssembly=blazor Microsoft.EntityFrameworkCore=entity-framework "
                     "Microsoft.Maui.Controls=maui Grpc.AspNetCore=grpc"),
    "ruby": _parse_dependency_table("rails=rails sinatra=sinatra hanami=hanami rack=rack sidekiq=sidekiq jekyll=jekyll grape=grape"),
    "php": _parse_dependency_table("laravel/framework=laravel symfony/framework-bundle=symfony slim/slim=slim "
                  "cakephp/cakephp=cakephp yiisoft/yii2=yii drupal/core=drupal codeigniter4/framework=codeigniter"),
    "elixir": _parse_dependency_table("phoenix=phoenix plug=plug ecto=ecto absinthe=absinthe nerves=nerves oban=oban"),
    "swift": _parse_dependency_table("vapor=vapor swift-nio=swiftnio hummingbird=hummingbird swift-argument-parser=argumentparser"),
    "dart": _parse_dependency_table("flutter=flutter shelf=shelf serverpod=serverpod"),
}
DATABASES_BY_ECOSYSTEM: dict[str, dict[str, str]] = {
    "python": _parse_dependency_table("psycopg=postgresql psycopg2=postgresql psycopg2-binary=postgresql asyncpg=postgresql "
                     "mysqlclient=mysql pymysql=mysql redis=redis pymongo=mongodb motor=mongodb apsw=sqlite aiosqlite=sqlite "
                     "cassandra-driver=cassandra elasticsearch=elasticsearch neo4j=neo4j clickhouse-driver=clickhouse"),
    "javascript": _parse_dependency_table("pg=postgresql mysql=mysql mysql2=mysql redis=redis ioredis=redis mongodb=mongodb mongoose=mongodb "
                         "sqlite3=sqlite better-sqlite3=sqlite @prisma/client=prisma"),
    "go": _parse_dependency_table("github.com/lib/pq=postgresql github.com/jackc/pgx=postgresql github.com/go-sql-driver/mysql=mysql "
                 "github.com/mattn/go-sqlite3=sqlite github.com/redis/go-redis=redis github.com/go-redis/redis=redis "
                 "go.mongodb.org/mongo-driver=mongodb go.etcd.io/etcd/client=etcd"),
    "rust": _parse_dependency_table("sqlx=sql postgres=postgresql tokio-postgres=postgresql rusqlite=sqlite redis=redis mongodb=mongodb"),
    "jvm": _parse_dependency_table("org.postgresql=postgresql com.mysql=mysql mysql=mysql com.h2database=h2 org.mongodb=mongodb "
                  "redis.clients=redis org.flywaydb=flyway org.liquibase=liquibase"),
    "dotnet": _parse_dependency_table("Npgsql=postgresql Npgsql.EntityFrameworkCore.PostgreSQL=postgresql MySqlConnector=mysql "
                     "Microsoft.Data.SqlClient=sql-server Microsoft.Data.Sqlite=sqlite StackExchange.Redis=redis MongoDB.Driver=mongodb"),
    "ruby": _parse_dependency_table("pg=postgresql mysql2=mysql sqlite3=sqlite redis=redis mongoid=mongodb"),
    "php": _parse_dependency_table("ext-pdo_pgsql=postgresql ext-pdo_mysql=mysql doctrine/dbal=sql predis/predis=redis mongodb/mongodb=mongodb"),
    "elixir": _parse_dependency_table("postgrex=postgresql myxql=mysql ecto_sqlite3=sqlite redix=redis mongodb_driver=mongodb"),
}
# fmt: on


def dependency_findings(
    source: ProjectSource, ecosystem: str, name: str, value: str, line: int
) -> Iterator[FactFinding]:
    """What a dependency says about the project that has it."""
    framework = FRAMEWORKS_BY_ECOSYSTEM.get(ecosystem, {}).get(name)
    if framework is not None:
        yield FactFinding("framework", framework, value, root=source.folder).at(line)
    database = DATABASES_BY_ECOSYSTEM.get(ecosystem, {}).get(name)
    if database is not None:
        yield FactFinding("database", database, value, root=source.folder).at(line)
