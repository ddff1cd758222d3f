"""Sound robot files with all kinds of things in them, to be damaged."""

URDF = """<robot name="all">
 <material name="blue"><color rgba="0 0 1 1"/></material>
 <link name="base"/>
 <link name="arm"><inertial><origin xyz="0 0 0.1" rpy="0 0.1 0"/><mass value="2"/>
  <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial>
  <visual><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.05" length="0.3"/></geometry><material name="blue"/></visual>
  <collision><geometry><sphere radius="0.06"/></geometry></collision></link>
 <link name="slide"><inertial><mass value="1"/><inertia ixx="0.01" ixy="0.001" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
  <collision><geometry><box size="0.1 0.2 0.1"/></geometry></collision></link>
 <link name="finger"><inertial><mass value="0.1"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial>
  <visual><geometry><mesh filename="package://robot/finger.stl" scale="1 1 1"/></geometry></visual></link>
 <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.3" rpy="0 0 1"/>
  <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="10" velocity="2"/><dynamics damping="0.1" friction="0.2"/></joint>
 <joint name="push" type="prismatic"><parent link="arm"/><child link="slide"/><origin xyz="0 0 0.2"/><axis xyz="1 0 0"/>
  <limit lower="0" upper="0.1" effort="10" velocity="1"/></joint>
 <joint name="follow" type="prismatic"><parent link="slide"/><child link="finger"/><origin xyz="0.1 0 0"/><axis xyz="0 1 0"/>
  <limit lower="0" upper="0.1" effort="10" velocity="1"/><mimic joint="push" multiplier="-1" offset="0.05"/></joint>
</robot>
"""

MJCF = """<mujoco model="all">
 <compiler angle="radian"/><option timestep="0.002" gravity="0 0 -9.81" integrator="implicitfast" cone="elliptic"/>
 <default><joint damping="0.1" armature="0.01"/><geom friction="0.8 0.01 0.001"/>
  <default class="foot"><geom type="sphere" size="0.03" solref="0.01 1"/></default></default>
 <worldbody>
  <geom name="floor" type="plane" size="5 5 0.1"/>
  <body name="trunk" pos="0 0 0.5"><freejoint name="root"/><geom type="box" size="0.2 0.1 0.05" mass="5"/>
   <body name="thigh" pos="0.2 0.1 0" quat="1 0 0 0"><joint name="hip" type="hinge" axis="0 1 0" range="-1 1"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02" density="900"/>
    <body name="shank" pos="0 0 -0.2"><joint name="knee" type="hinge" axis="0 1 0" pos="0 0 0.01" ref="0.1" springref="0.2"
      stiffness="3" frictionloss="0.05" range="-2 0.5"/>
     <geom type="cylinder" size="0.015 0.1" pos="0 0 -0.1"/><geom class="foot" pos="0 0 -0.2"/></body></body>
   <body name="tail" pos="-0.2 0 0"><joint name="ball" type="ball"/><inertial pos="0 0 0" mass="0.3" diaginertia="1e-3 1e-3 2e-3"/>
    <geom type="ellipsoid" size="0.05 0.02 0.02" mass="0"/>
    <body name="weight" pos="0 0 0.1"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
     <geom type="sphere" size="0.02"/></body></body></body>
 </worldbody>
 <actuator><motor name="m1" joint="hip" gear="20" ctrlrange="-1 1"/><motor name="m2" joint="knee" gear="10"/>
  <position name="p" joint="x" kp="5"/></actuator>
 <equality><joint joint1="x" joint2="y"/></equality>
</mujoco>
"""

HAND = """<mujoco model="hand">
 <option timestep="0.001" integrator="RK4"/>
 <worldbody>
  <body name="palm"><geom type="box" size="0.05 0.05 0.01"/>
   <body name="first" pos="0 0.05 0.01"><joint name="j1" axis="1 0 0" range="-10 90" limited="true"/>
    <geom name="bone" type="capsule" fromto="0 0 0 0 0.04 0" size="0.008"/>
    <body name="second" pos="0 0.04 0"><joint name="j2" axis="1 0 0" range="0 90" stiffness="0.1"/>
     <geom name="tip" type="capsule" fromto="0 0 0 0 0.03 0" size="0.007" condim="4" friction="1 0.02 0.001"/></body></body></body>
  <body name="thing" pos="0 0.1 0.1"><freejoint/><geom name="thing" type="ellipsoid" size="0.02 0.03 0.02"/></body>
 </worldbody>
 <contact><pair geom1="tip" geom2="thing" friction="0.9 0.9 0.01 0.001 0.001"/><exclude body1="palm" body2="first"/></contact>
 <tendon><fixed name="flexor" stiffness="2" damping="0.1" frictionloss="0.01" range="-1 3" limited="true">
   <joint joint="j1" coef="1"/><joint joint="j2" coef="0.7"/></fixed></tendon>
 <actuator><motor name="pull" tendon="flexor" gear="2" ctrlrange="-1 1" forcerange="-3 3"/>
  <velocity name="turn" joint="j1" kv="0.3"/><motor name="push" joint="j1" gear="3"/>
  <general name="hold" joint="j2" gainprm="4" biastype="affine" biasprm="0 -4 -0.2"/></actuator>
 <equality><joint joint1="j1" joint2="j2" polycoef="0 1 0 0 0"/></equality>
 <keyframe><key name="home" qpos="0.1 0.2 0 0.1 0.1 1 0 0 0"/></keyframe>
</mujoco>
"""
