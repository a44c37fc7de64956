# SPDX-License-Identifier: GPL-3.0-or-later
"""What this checkout needs of the machine: the packages that tests/packages lists, and one system user."""
import os
import pwd
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INSTALL = ['apt-get', 'install', '-y', '-q', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=600']
UPDATE = ['apt-get', 'update', '-q', '-o', 'DPkg::Lock::Timeout=600']
USER = 'libvirt-qemu'
# libvirt's QEMU driver does not open without this user, which libvirt-daemon-system makes. We want neither that package's services nor
# its networks, so the user is made alone. No machine of ours runs as it.
ADD_USER = ['useradd', '--system', '--user-group', '--no-create-home', '--home-dir', '/var/lib/libvirt', '--shell', '/usr/sbin/nologin',
            USER]
SECONDS = 1800


class Missing(Exception):
    """What the person has to do first."""


def wanted():
    with open(os.path.join(ROOT, 'tests', 'packages'), encoding='utf-8') as file:
        return [line.strip() for line in file if line.strip() and not line.startswith('#')]


def missing():
    asked = subprocess.run(['dpkg-query', '-W', '-f', '${Package} ${db:Status-Status}\n', *wanted()], capture_output=True,
                           text=True, check=False).stdout
    present = {line.split()[0] for line in asked.splitlines() if line.endswith(' installed')}
    return [package for package in wanted() if package not in present]


def user_exists():
    try:
        return pwd.getpwnam(USER) is not None
    except KeyError:
        return False


def run(argv):
    ran = subprocess.run(argv, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, errors='replace', env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive'})
    if ran.returncode != 0:
        raise Missing(f'{" ".join(argv)} failed:\n{ran.stdout[-4000:]}')


def install(say):
    """Installs as root what is missing, else raises Missing with the commands to give. @say: tells the person what goes on"""
    if shutil.which('dpkg-query') is None:
        say('This is no Debian: what tests/packages lists is needed, under the names it has here')
        return
    packages = missing()
    commands = ([UPDATE, INSTALL + packages] if packages else []) + ([] if user_exists() else [ADD_USER])
    if not commands:
        return
    if os.geteuid() != 0:
        raise Missing('Something is missing. Run this as root, or give these commands first:\n\n'
                      + '\n'.join('  sudo ' + ' '.join(command) for command in commands))
    if packages:
        say('Installing ' + ' '.join(packages))
        try:
            run(UPDATE)
        except Missing as error:  # one mirror of several may be away
            print(error, file=sys.stderr)
        run(INSTALL + packages)
    if not user_exists():
        say(f'Adding the system user {USER}, without which libvirt does not open')
        run(ADD_USER)
